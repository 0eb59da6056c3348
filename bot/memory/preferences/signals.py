"""Which sentences state a standing preference, which take one back, and which only look like it. English and Chinese."""

from __future__ import annotations

import re

from bot.memory.preferences.phrases import CHINESE_PHRASES, ENGLISH_PHRASES
from bot.memory.preferences.spelling import evened, simplified
from bot.memory.preferences.vocabulary import LEAD, LEAD_ZH, SCOPE, THIRD, VERB

# ---- what makes a sentence no preference, whatever words it holds

_QUESTION = re.compile(
    r"[?？]\s*$"
    r"|^(?:so |and |but |ok(?:ay)?,? |hey,? )?(?:why|what|when did|when was|how|which|who|where|whose|is|are|was|were|do|does|did|should|has|have|had|will|isn't"
    r"|aren't|doesn't|won't|shouldn't)\b(?! not\b)"
    r"|吗\s*[。!！]?$|呢\s*[。!！]?$|为什么|为啥|是不是|有没有|会不会|是否|怎么|什么时候|要不要|多少|哪(?:个|台|些|里)|难道|干嘛",
    re.I,
)
# "Could you always …?", "能不能以后…？": a request in a question's clothes.
_ASKED_FOR = re.compile(
    r"\b(?:can|could|would|will) you (?:please |kindly |mind ){0,2}(?:(?:always|never|from now on|in (?:the )?future|by default|remember (?:that|my|i))\b|.{3,120}\b(?:from now on|going forward|in (?:the )?future|by default)\b)"
    r"|\b(?:from now on|going forward|moving forward|henceforth|in (?:the )?future|by default|next time),? (?:can|could|would|will) you\b"
    r"|^(?!(?:why|what|how|when|where|who|which|is|are|was|does|do|did|should|has|have)\b).{0,120}\b(?:from now on|going forward|in (?:the )?future|by default|always|never)\b.{0,120},? (?:ok(?:ay)?|alright|all right|please|pls|would you|will you|can you|deal)\s?\?+$"
    r"|^(?:can|could) we agree\b"
    r"|(?:能不能|可不可以|可以|麻烦你?|能否)(?:请)?(?:以后|今后|每次|默认|记住)"
    r"|(?:以后|今后|往后|每次|默认)[^？?]{1,60}(?:行吗|好吗|可以吗|成吗|好不好|行不行|可不可以|可否|成不成)",
    re.I,
)
_REPORTED = re.compile(
    r"\b(?:he|she|they|boss|manager|lead|cto|ceo|someone|somebody|people|everyone|vendor|customers?|clients?|colleagues?|team|guys?|docs?|documentation"
    r"|manual|runbook|wiki|readme|article|guide|post|book|ticket|email|alert|message|log|logs|error|output|script|comment|bob|alice|<@\w{1,20}>|@\w{1,30})"
    r"(?:'s)?,? (?:\w{1,12} )?(?:said|says|say|told|tells|asked|asks|wrote|writes|recommends?|recommended|suggests?|suggested|claims?|thinks?|insists?|wants?|wanted|prefers?|likes?|prints?|shows?|reads|keeps? saying|mentioned|states?)\b"
    r"|\baccording to\b|\bapparently\b|\bit (?:says|said)\b|\bi (?:was|am) told\b|\bi(?:'ve)? (?:heard|read (?:that|somewhere|in|about|on))\b|\bquote\b.{0,10}:"
    r"|\b(?!i\b|I\b)[A-Z][a-z]{2,15} (?:said|says|told me|wants|prefers|insists|asked)\b",
    re.I,
)
_REPORTED_ZH = re.compile(
    r"(?:他|她|他们|她们|领导|老板|同事|客户|经理|主管|有人|别人|大家|厂商|运维|开发|产品|老师|文档|手册|日志|报错|脚本|网上|文章|邮件|工单|公告|规范|教程|wiki|runbook)"
    r"[^，。]{0,8}(?:说|讲|建议|要求|认为|觉得|写着|写道|写的|提到|告诉|让|叫|喜欢|偏好|习惯|打印|显示|规定)|据说|听说|按(?:照)?(?:文档|手册|规定)"
    r"|[A-Za-z0-9@<>]{2,20}(?:说|告诉我|建议)"
)
_SARCASM = re.compile(
    r"🙄|😒|🤡|🙃|😏|\boh,? (?:great|sure|wonderful|yes|right|yeah)\b|\byeah,? (?:right|sure)\b|^(?:sure|right|great|yeah|brilliant|fantastic|lovely|wonderful|awesome)[,.!] (?!from now|always|please)"
    r"|^sure,? (?:just|let's|why not|always|never|go ahead)\b|what could (?:possibly )?go wrong|\bas if\b|\bthanks a lot\b|\bbecause that (?:always )?work|\bgood luck\b|(?:^|\s)/s\b|\blol\b|\bhaha"
    r"|\bwhy not just\b|\bthat always works\b|\bwhat a (?:great|brilliant) idea\b|\bgenius\b|\bgreat idea,"
    r"|呵呵|真棒|太棒了|真行|好极了|笑死|哈哈|真是(?:太好|好主意|高明)|可真|干脆.{0,10}(?:算了|好了)|直接.{0,8}(?:得了|好了)|谢谢你啊|厉害了",
    re.I,
)
_OF_OTHERS = re.compile(
    r"^(?:if|when|whenever) (?:the |a |an |any )?(?:customer|user|client|someone|somebody|anyone|they|he|she|people|visitor|tenant|developer)s?\b"
    r"|(?:如果|要是|假如|当)[^，。]{0,4}(?:客户|用户|他|她|有人|别人|访客|租户|开发)",
    re.I,
)
_ONE_OFF = re.compile(
    r"\b(?:this time|this once|just once|for now|right now|for today|tonight|tomorrow|until (?:tomorrow|monday|friday)|for the moment"
    r"|in (?:a|an|ten|five|[0-9]{1,3}) (?:minute|hour|sec|day|bit)s?|later today|this (?:week|month|morning|afternoon|evening)|for this (?:one|question|thread|incident)|once more|next (?:week|month)"
    r"|until (?:i|i'm|we|we're|the|then|lunch)|(?:i'm|i am|we're|we are) still|while (?:i'm|i am|we're|we are))\b"
    r"|我(?:还|正|还正)?在(?:抓|查|跑|导|调|排查|处理|看|试|改|做|开会|吃饭|忙)|还没[^，。]{0,8}(?:完|好)|等我|等[^，。]{1,10}再"
    r"|这次|这一次|这回|先.{0,6}(?:这|一下)|暂时|今天|今晚|明天|现在(?!起|开始)|等会|待会|一会儿|分钟后|小时后|下午|再说",
    re.I,
)
_COMPLAINT_ZH = re.compile(
    r"失败|报错|出现|崩溃|超时|出错|卡住|卡死|很慢|好慢|变慢|满了|挂掉|挂了|丢|重复|不行|烦死|真烦|无语|离谱|没有?反应|有问题|502|504|不了|不上|才能|起不来|断开|连不上|异常|变(?:高|低)|很高|飙"
)
_WISH_ZH = re.compile(r"要|请|别|不要|记得|给我|通知|告诉|先|用|带|除非|只")

# ---- what states a preference

_STRONG = re.compile(
    r"\b(?:from now on|from here on(?: out| in)?|from today(?: on)?(?!')|going forward|moving forward|henceforth|from this point on|for future reference|as of now|as of today|for (?:all|any|every) (?:your )?future \w{3,12}|in (?:the )?future(?! (?:tense|releases?|versions?|updates?)))\b",
    re.I,
)
_STRONG_SUBJECT = re.compile(
    rf"^{LEAD}(?:from now on|going forward|moving forward|henceforth|in (?:the )?future|from today(?: on)?|from here on|as of (?:now|today))?[,:]? ?(?!(?:the|our) (?:new )?default\b){THIRD}\b",
    re.I,
)
_ENGLISH = re.compile(
    rf"^{LEAD}{SCOPE}{LEAD}(?:always|never|don't ever|do not ever|dont ever|never,? ever) (?:again |ever )?{VERB}\b"
    rf"|^{LEAD}(?:always|never)[,:]? (?:when|before|after|if)\b.{{2,80}}, ?{VERB}\b"
    rf"|^{LEAD}(?:don't|do not|dont|please don't) {VERB}\b.{{0,160}}\b(?:ever(?: again)?|any ?more|again)\b"
    rf"|^{LEAD}{VERB}\b.{{1,160}},? (?:always|by default|every time|each time)[.!]?$"
    rf"|^{LEAD}{VERB} (?:always|by default)\b"
    rf"|^{LEAD}by default,? (?:please )?(?:{VERB}\b|i\b|my\b|only\b|don't\b|do not\b|never\b|all\b)"
    rf"|^{LEAD}default to\b|^{LEAD}set (?:my|the) default [\w -]{{2,30}} to\b|\bmy (?:default|preferred|favou?rite|usual) [\w -]{{2,30}} (?:is|are|should be|will be)\b"
    rf"|^{LEAD}(?:the|your) default [\w -]{{2,30}} should be\b|^{LEAD}(?:make|set) .{{2,60}} (?:(?:my|your) default\b|the default[.!]?$)"
    r"|^.{0,40}\bmy (?:time ?zone|editor|shell|language|native language|working hours|on-call hours|namespace|cluster|branch|environment|units?) (?:is|are|should be)\b"
    rf"|^{LEAD}(?:(?:note|take note)(?: that\b|:|,| (?:i|i'm|my|we|our)\b)|(?:don't forget|do not forget)(?: that\b|:|,| (?:i|i'm|my|we|our|to always|to never)\b)|(?:remember|keep in mind|bear in mind|make a note)(?:,? please)?(?: that\b|:|,| (?:i|i'm|my|we|our|to|not to|never|always|the|for me|this)\b))"
    r"|\b(?:remember that|remember this|remember it|keep that in mind|please remember|bear that in mind)(?: please)?[.!]?$"
    r"|\bi(?:'d| would)? (?:\w{2,10} )?prefer\b|\bi(?:'d| would) (?:much )?rather\b|\bmy preference is\b"
    r"|\bi (?:always|never|only|generally|usually) (?:ever )?(?:want|need|use|like|work|prefer|expect)\b"
    r"|\bi (?:really )?(?:like|love|hate|dislike|don't like|do not like|can't stand) (?:my |your |the |to (?:see|get|have|read) )?(?:short|brief|concise|long|detailed|terse|verbose|answers?|replies|repl|tables?|bullet|raw|output|emojis?|lists?|summar|plain|graphs?|charts?|markdown|json|yaml)"
    rf"|^{LEAD}(?:every|each) time (?:you|i|we)\b.{{2,100}}, ?(?:please )?(?:{VERB}|don't|never|always)\b"
    rf"|^{LEAD}(?:when|when?ever|if) (?:you|i|we)\b.{{2,100}},? ?(?:i mean|i want|please always|always|never)\b"
    rf"|^{LEAD}whenever (?:you|i)\b.{{2,100}}, ?(?:please )?{VERB}\b"
    rf"|^{LEAD}(?:stop|quit) (?:using|posting|sending|showing|adding|including|asking|pinging|mentioning|tagging|summari[sz]ing|writing|answering|replying|apologi[sz]ing|explaining)\b"
    r"|^(?:please )?(?:don't|do not) (?:use|add|send|include|write) (?:any )?(?:emojis?|tables?|markdown|bullet points?|jokes)[.!]?$|^(?:please )?no (?:more )?(?:emojis?|tables?|markdown|bullet points?|summaries|jokes|pings)(?: please| ever| any ?more)?[.!]?$"
    r"|\b(?:call me|address me as) [A-Z]\w{1,20}[.!]?$",
    re.I,
)
_NOT_ENGLISH = re.compile(
    r"\b(?:remember|recall) (?:when|how|what|why|where|which|last|the (?:time|day|outage|incident))\b|\b(?:don't|do not|can't|cannot) (?:remember|recall)\b|\b(?:do|did|can) you (?:remember|recall)\b(?! (?:that|my|i)\b)"
    r"|\b(?:i|we) (?:always|never) (?:get|got|see|saw|have|had|forget|thought|knew|run into|end up)\b|\b(?:by default) in (?:that|this|the)\b|\b(?:is|are|was|were|runs?|listens?|uses|returns?|has) .{0,40}\bby default\b|\b(?:i|we)(?:'ll| will| can) remember\b"
    r"|\bi(?:'d| would)? prefer (?:if we |to )?(?:wait|roll|restart|not to (?:restart|touch) (?:it|this))|\bi'd rather (?:wait|not (?:do|restart|touch) (?:it|that|this))",
    re.I,
)
_CHINESE = re.compile(
    rf"(?:^|[，,；;：:] ?){LEAD_ZH}(?:以后|今后|往后|从现在起|从现在开始|从今以后|从今天起|从今往后|打今天起|日后|下次开始|下次起)(?!再说|再看|再议)"
    rf"|(?:^|[，,；;] ?){LEAD_ZH}(?:请|要)?(?:牢?记住|记一下|记下来?|记着|谨记|别忘了|不要忘了)"
    r"|(?:请|要|帮我|给我)?(?:记住|记一下|记下来?|记着)(?:哦|了|吧|这一?点)?[。!！~]?$"
    rf"|(?:^|[，,；;] ?){LEAD_ZH}记得(?:以后|每次|要|先|一定|都|带|用|别|不要|我)"
    rf"|(?:^|[，,；;] ?){LEAD_ZH}(?:每次|每回|每当|凡是|只要)(?=.{{1,60}}(?:都|先|要|请|别|不要|必须|给|带|用))"
    rf"|(?:^|[，,；;] ?){LEAD_ZH}(?:默认|缺省)(?:情况下)?(?:先|就|都|只|请)?(?:看|用|使用|查|走|连|到|选|输出|显示|按|在|以|去|给|不|别|回答|操作|执行|带|加|展示|忽略)"
    r"|(?:^|[，,；;] ?)(?:我的?|我们的?|把|将|请把)?默认的?(?:的|集群|命名空间|分支|主机|机器|环境|语言|编辑器|时区|数据库|项目|地域|区域|上下文|shell|仓库|namespace|集群名|输出格式|格式)(?:就?是|用|为|改成|改为|换成|设为|设成|改用|统一用|定为)"
    rf"|(?:^|[，,；;] ?){LEAD_ZH}(?:永远|绝对|再也|千万|万万|绝)(?:都)?(?:不要|别|不许|不能|不可以|不得|不准)"
    rf"|(?:^|[，,；;] ?){LEAD_ZH}(?:不要再|别再|不许再|不准再|请勿再|禁止|切勿|一律不|一概不)"
    rf"|(?:^|[，,；;] ?){LEAD_ZH}(?:总是|始终|一直|永远|一律|一概|统一|任何时候都)(?!用的|在用)(?:都|要|请|先|用|给|把|以|按|使用|说|回答|带|加|输出|显示|只)"
    rf"|(?:^|[，,；;] ?)(?:请|回答|回复|输出|时间|命令|日志|大小|单位|结果|报告|{LEAD_ZH})(?:都|全都|全部|一律|统一)(?:请)?(?:用|使用|按|以|改用|带上?|要|给)"
    r"|我(?:个人)?(?:更|比较|还是|一般|平时|通常|一向|特别|很)?(?:喜欢|偏好|倾向于?|习惯)|我(?:很|最|特别)?(?:不喜欢|讨厌|不想看到?|不爱看)"
    r"|我希望(?:你)?(?:以后|每次|都|总是|始终|能?一直)|我说的?.{1,30}(?:都|就)?是?指的?(?:是)?|我的?(?:时区|编辑器|工作时间|值班时间|常用)[^，。]{0,8}是|我(?:人)?在(?:北京|上海|东八区|东京)时区"
)
_AFTER_ZH = re.compile(
    r"^以后(?:我|我们)(?:自己)?(?:会|想|打算|来)|^以后(?:会|就会|还会|可能|应该|估计|大概|也许|肯定|不会|没|的事)|^(?:我|我们)以后(?:会|就|想|打算)|(?:别|不要)再(?:报错|失败|超时|挂|崩|卡|丢|出错|出问题|出故障|告警|报警|断|掉线)|不记得|记得(?:上次|之前|那次)|记住密码|^默认(?:是|的)"
)

# ---- what takes a preference back

_BACK = re.compile(
    r"^(?:(?:please|ok(?:ay)?|actually|hmm|oh|no|and|but|sorry|well|you can|can you|could you)[, ]{1,2}){0,4}"
    r"(?:forget (?:that|it|this|about|what i|my|the|i\b|everything)|never ?mind\b|(?:scratch|strike|drop|disregard|ignore|cancel|undo) (?:that|what i|everything i|all i)\b|cancel that|cancel (?:my|the) |undo that|take (?:that|it) back|i take (?:that|it) back|drop (?:that|the|my)|disregard (?:that|what)|ignore what i said"
    r"|(?:you|i|we) (?:no longer|don't|do not|needn't|need not)(?: need| have)?\b(?=.{0,120}(?:no longer|any ?more|longer|needn't|need not))|(?:you|i|we) no longer\b|no longer (?:use|answer|show|need|run|prefer|ask|include|post|send|reply)\b"
    r"|(?:you|i|we) (?:don't|do not) (?:need|have|want) (?:you )?to .{1,120}(?:any ?more|any longer)|don't (?:remember|bother with) (?:that|the|my)|that(?:'s| is) no longer|not any ?more|(?:you|i|we) (?:can|may) stop \w{2,20}ing\b|(?:let's |please )?go back to (?:your |the |my )?(?:default|old way|usual|normal (?:answers|format))|(?:you (?:can|may)|feel free to) (?:use|show|add|include|post|write|mention|ping|page|ask) .{2,80}\bagain[.!]?$|(?:there(?:'s| is) )?no need (?:to|for) .{2,120}(?:any ?more|any longer)|[^,.]{2,60}\b(?:rule|preference|setting|habit|wish|thing), (?:please )?(?:drop|forget|cancel|scratch|undo|remove) (?:it|that|this)\b|(?:remove|delete|clear|reset) (?:my|the|that) .{0,40}(?:preference|default|setting|rule|memor))",
    re.I,
)
_ALLOWED_AGAIN = re.compile(
    r"\b(?:emojis?|tables?|lists?|bullet points?|bullets|charts?|graphs?|markdown|json|yaml|sudo|details|explanations|links|summaries|jokes|(?:short|long|detailed|brief) (?:answers|replies|ones)) (?:is|are) (?:\w{2,12} )?(?:fine|ok(?:ay)?|allowed|welcome|good|all ?right)(?: (?:by|with) me)?(?: again| now| after all| too)?[.!]?$"
    r"|(?:表情|表格|列表|图表|链接|markdown|sudo|解释|命令|主机名)[^，。]{0,4}(?:可以|能)(?:再|继续)?(?:用|加|发|带|贴|写)了?[。!！]?$",
    re.I,
)
_BACK_ZH = re.compile(
    r"^(?:(?:请|那|好|嗯|哦|对了|还是|你|可以|把)[，, ]?){0,4}(?:算了|取消|忘掉|忘了|忘记|撤销|撤回|收回|作废|当我没说|不作数|清除|删掉|去掉)(?!.{0,10}(?:任务|部署|订单|发布|作业|pod|进程|文件|日志|订阅))"
    r"|^(?:(?:请|那|好|现在|以后|你|可以|之前|刚才|我|也|就|已经)[，, ]?){0,4}(?:不用|不需要|不必|无需|用不着|不再需要|不再)(?:再|继续|都)?.{0,60}?了(?:吧|哈|啦)?[。!！~]?$|(?:不用了|不需要了|作废|取消(?:吧|掉)|不算数|算了吧?)[。!！~]?$"
    r"|^[^，。]{1,14}(?:不用|不需要|不必|无需|不再|用不着)(?:再|继续|都)?(?:带|加|写|贴|发|附|显示|给|说|问|标|列|报|提醒|限制|禁)[^，。]{0,10}了(?:吧|哈|啦)?[。!！~]?$",
)
_LIFTED = re.compile(
    r"^(?:(?:please|ok(?:ay)?|and|but|so|well)[, ]{1,2}){0,3}(?:from now on|going forward|in (?:the )?future),? "
    r"(?:you|i|we) (?:(?:don't|do not|no longer) (?:need|have) to|needn't|need not)\b",
    re.I,
)
_BARE_BACK = re.compile(
    r"\b(?:forget|never ?mind|scratch|cancel|undo|take|back|drop|disregard|ignore|what|said|before|earlier|just|told|asked|everything|no|longer|not|any|more|ok|okay|actually|sorry|hmm|oh|well|stop|please|then|preference|rule|last|one)\b",
    re.I,
)


def no_preference(text: str) -> bool:
    """Questions, reported speech, sarcasm, conditions about others."""
    text = evened(text)
    if _ASKED_FOR.search(text):
        return bool(_SARCASM.search(text) or _REPORTED_ZH.search(text))
    return bool(
        _QUESTION.search(text)
        or (_REPORTED.search(text) and not re.match(r"(?:as )?i (?:said|told|asked)", text, re.I))
        or _REPORTED_ZH.search(text)
        or _SARCASM.search(text)
        or _OF_OTHERS.search(text)
    )


def states(text: str) -> bool:
    """Whether a sentence states a standing preference."""
    text = evened(text)
    if strong := _STRONG.search(text):
        joint = re.search(r"[,;] ?(?:(?:and|but|so|also),? )?$", text[: strong.start()])
        clause = text[strong.start() :] if joint else text
        if not _STRONG_SUBJECT.match(clause) and not re.match(
            rf"(?!(?:the|our) (?:new )?default\b){THIRD}\b", clause, re.I
        ):
            return True
    if (_ENGLISH.search(text) or ENGLISH_PHRASES.search(text)) and not _NOT_ENGLISH.search(text):
        return not _ONE_OFF.search(text)
    if (_CHINESE.search(text) or CHINESE_PHRASES.search(text)) and not _AFTER_ZH.search(text):
        if _ONE_OFF.search(text) and not re.search(r"以后|今后|从(?:现在|今|明|下|本|这)", text):
            return False
        return not _COMPLAINT_ZH.search(text) or bool(_WISH_ZH.search(text))
    return False


def takes_back(text: str) -> bool:
    """Whether a sentence takes a preference back; a new one in the same sentence supersedes instead."""
    text = evened(text)
    return bool(_BACK.search(text) or _BACK_ZH.search(text) or _ALLOWED_AGAIN.search(text) or lifts(text))


def lifts(text: str) -> bool:
    """ "From now on you need not …" states nothing new: what was wished is wished no longer."""
    return bool(_LIFTED.search(text))


def signal_at(text: str) -> int:
    """Where in a Chinese sentence the clause with the signal begins; 0 for an English one."""
    text = simplified(text)
    hits = [hit for known in (_CHINESE, CHINESE_PHRASES) if (hit := known.search(text))]
    if not hits:
        return 0
    hit = min(hits, key=lambda hit: hit.start())
    return hit.end() - len(hit[0].lstrip("，,；;：: "))


_BARE_BACK_ZH = re.compile(
    r"算了|取消|忘掉|忘了|忘记|撤销|撤回|收回|作废|当我没说|不作数|刚才|刚刚|刚|那条|这条|上面|不用了|不需要了|吧"
)


def said_without_topic(text: str) -> str:
    """The words of a taking back, without those that only take back."""
    return _BARE_BACK_ZH.sub(" ", _BARE_BACK.sub(" ", text))
