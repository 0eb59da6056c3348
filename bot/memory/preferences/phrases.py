"""Phrases that make a wish a standing one without the plain signals: rules, habits, notes for later, "unless I say"."""

from __future__ import annotations

import re

from bot.memory.preferences.vocabulary import ANY_VERB, LEAD, LEAD_ZH, THIRD, VERB

_ORDER = rf"(?:{VERB}|don't|do not|never|always|only|no)"
_OTHERWISE = (
    r"(?:unless (?:i|we) (?:\w{2,12} ){0,2}otherwise|unless (?:told|stated|specified|asked|noted|instructed) otherwise"
    r"|unless otherwise (?:told|stated|specified|asked|noted|instructed))"
)
_SHOWN = r"(?:use|give|show|answer|reply|respond|include|ask|tell|send|add|write|format|prefer|print|list|explain|summari[sz]e|check|look)"

ENGLISH_PHRASES = re.compile(
    rf"^{LEAD}{_OTHERWISE},? (?:please |i mean |i want |i'm ){{0,2}}(?:{_ORDER}|i mean|i want)\b|^{LEAD}(?:{_ORDER}|i mean|i want)\b.{{1,160}}\b{_OTHERWISE}"
    rf"|^{LEAD}(?:an? |quick |short ){{0,2}}(?:note |reminder )?for (?:the |my |your )?(?:future|next times?|later)[:,]"
    rf"|^{LEAD}(?:make it (?:a|your) (?:habit|rule|practice|default|policy)|make a (?:habit|point|rule) of|get (?:in|into) the habit of|(?:my|the) (?:rule|policy|convention) (?:is|here is)\b|(?:new |house |standing )?rule:)"
    rf"|^{LEAD}as a (?:general |good )?(?:rule|habit|principle|matter of course|matter of principle)(?:,? (?:please )?{_ORDER}\b|, (?!{THIRD}\b)(?!\w{{1,30}}s\b)[a-z][\w-]{{1,30}}\b)"
    rf"|^{LEAD}for (?!(?:some|no|what|whatever|any) reason)[^,]{{2,40}}? (?:please )?(?:always|never) {_SHOWN}\b"
    rf"|^{LEAD}(?:on|in|with|when|after|before) [^,]{{2,60}}? (?:please )?(?:always|never) (?:give|show|tell|send|ask) me\b"
    rf"|[,;] (?:so|therefore|hence),? (?:please )?(?:{VERB}\b[^?]{{1,120}},? (?:always|by default|every time|each time)[.!]?$|(?:please )?(?:always|never) {VERB}\b)"
    rf"|^{LEAD}(?:always|never) (?:{VERB}|{ANY_VERB})\b|(?:[;:]|, so|, and so|, please) (?:please |so |and )?(?:always|never) (?:{VERB}|{ANY_VERB})\b"
    r"|\bi (?:really |usually |generally |always )?(?:like|love|hate|dislike|don't like) (?:to (?:see|get|have|read|know)|seeing|getting|reading|(?:it )?when you)\b"
    rf"|^{LEAD}(?:every time|each time|when ?ever) [^,]{{2,80}}, ?(?:please )?{VERB} (?:me|us|the|an?|my|it|them|to|in|at|for|with|only|also|all|by|on|first)\b"
    rf"|^{LEAD}(?:i'd like|i want|i would like|i need|give me|show me) .{{2,80}} by default[.!]?$"
    r"|\b(?:can we|let's|could we) agree (?:that|to|on)\b.{2,120}\b(?:always|never|from now on)\b"
    rf"|^{LEAD}prefer (?!not\b)[^,]{{2,60}} (?:over|to|rather than|instead of)\b|^{LEAD}(?:always|never),? ever (?:{VERB}|{ANY_VERB})\b"
    r"|\bwould you mind (?:always|never) \w{2,20}ing\b"
    rf"|^{LEAD}no (?:more )?\w{{3,20}}(?: \w{{3,20}})?(?:,? please)?,? ever(?: again)?[.!]?$"
    rf"|^{LEAD}you (?:don't|do not|needn't|need not) (?:have to |need to )?{VERB}\b.{{1,120}}\b(?:each|every)(?: single)? time\b"
    rf"|^{LEAD}next time,? (?:please )?(?:{_ORDER}\b|(?:when )?you\b.{{2,80}}, ?{_ORDER}\b)"
    rf"|^{LEAD}(?:any ?time you|if you ever|if ever you)\b.{{2,100}}, ?(?:please )?{_ORDER}\b"
    rf"|^{LEAD}before you {VERB} (?:any\w{{0,6}}|an?|every\w{{0,6}}|prod|production)\b.{{0,80}}, ?(?:please )?{_ORDER}\b",
    re.I,
)
_BEGIN = rf"(?:^|[，,；;：:] ?){LEAD_ZH}"
_DO_NOT = r"(?:不要|别|不许|不准|不得|禁止|请勿)"

CHINESE_PHRASES = re.compile(
    r"(?:^|[，,；;] ?)(?:请|麻烦你?|那|你|也|拜托|帮我|顺便){0,2}记得[，,：:]"
    rf"|{_BEGIN}(?:帮|给)(?:我|忙)(?:记住|记着|记下|记一下)[，,：: ]"
    r"|我(?:说|提到?|讲|指)的?[^，。]{1,20}(?:默认|一律|一般|都)(?:都|就)?(?:是|指)"
    rf"|(?:没有?(?:经过?)?|未经过?|不经过?)(?:我|本人)(?:的)?[^，。]{{0,6}}(?:同意|允许|批准|确认|许可|点头)[^，。]{{0,3}}[，, ]?[^，。]{{0,6}}{_DO_NOT}"
    rf"|(?:^|[，,；;] ?)[^，。]{{1,16}}(?:永远|绝对|千万|一律|一概|万万){_DO_NOT}"
    r"|(?:没有?|未|不)(?:特别|特意|另外|单独|专门|明确)(?:说明|指定|注明|交代|说|提)(?:的话|时)?[，, ]?(?:就|都|则|一律|默认|按)|除非(?:我)?(?:另外?|特别|特意|单独|明确)(?:有)?(?:说明|说|指定|要求|交代)"
    r"|(?:定|立|约|约定|说好|加|有)(?:了)?(?:一?个|一?条|下)?(?:规矩|规则|约定|原则|习惯)[，,：:]|我的(?:规矩|规则|原则)是"
    rf"|{_BEGIN}(?:后面|之后|后续)(?!会|没|不|还|又|再)(?=[^，。]{{0,20}}(?:都|一律|统一|全部)(?:先|用|按|给|带|要|请|改|写|发|别|不要|走|看))"
    r"|(?:^|[，,；;] ?)(?:能不能|请|你|拜托|麻烦)?(?:别|不要|少)(?:老是|总是|动不动|[老总](?=给|发|贴|问|用|重复|说|写|加|带|在|让|这么|那么|把|拿))"
    rf"|{_BEGIN}从(?:现在|今天|今日|今|明天|下次|这次|下周|本周|这周|即日|此)(?:起|开始|以后|往后)"
    rf"|{_BEGIN}(?:即日起|打今儿起|自今日起)"
    r"|^(?:查|看|改|写|发|跑|连|传|装|删|重启|报|显示|展示|输出|时间|日志|回复|回答|命令)[^，。]{0,10}(?:统一|一律|一概)(?:都)?(?:用|按|以|走|给|发|改|写|带)(?!的|了)"
    r"|^(?![这那它])[^，。]{1,8}以后(?:都|一律|统一|全部|就)?(?:用(?!不|户|了)|按|请|别|不要|给(?!不)|改成|改用|带上|写|发(?!现|生|布)|记得)"
    rf"|{_BEGIN}(?:但凡|一旦)[^，。]{{1,20}}[，,]?(?:就|都|马上|立刻|立即|先|请|要){{0,2}}(?:通知|告诉|叫我|给我|贴|发|问我|停|提醒)"
    r"|我(?:这边|这里|们)?(?:一般|平时|通常|向来|历来)(?:都|就|只)?(?:用|看|在|按|走|查|连|要)(?!过|了)|我只(?:看得懂|习惯|认|会用|用)(?!过|了)"
    rf"|{_BEGIN}每(?:次|回)都(?:请|给|附|带|先|把|写|贴|发|说|加|用|列|标|问)|^[^，。]{{1,10}}请(?:一律|统一|都|全部|始终|总是|务必)"
    r"|^(?:监控|日志|统计|查询|指标|报表|报告|图表|告警|结果|回答|输出|查|看)[^，。默]{0,8}默认(?:先|就|都|只)?(?:看|用|查|忽略|跳过|给|取|展示|显示|输出|按|排除)(?!的|了|不)"
    rf"|{_BEGIN}下(?:次|回)(?:记得|请|先|别|不要|直接|遇到|碰到|看到|用|给)"
)
