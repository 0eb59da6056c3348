"""What a preference is about: a known matter with a normal value, so that a newer one of the same matter supersedes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from bot.memory.words import content

_LANGUAGES = {
    "Chinese": "chinese|mandarin|中文|汉语|普通话|简体中文|国语", "English": "english|英文|英语", "German": "german|deutsch|德语|德文",
    "French": "french|法语|法文", "Spanish": "spanish|西班牙语", "Italian": "italian|意大利语", "Japanese": "japanese|日语|日文",
    "Korean": "korean|韩语|韩文", "Portuguese": "portuguese|葡萄牙语", "Russian": "russian|俄语|俄文", "Dutch": "dutch|荷兰语",
    "Polish": "polish|波兰语", "Turkish": "turkish|土耳其语", "Arabic": "arabic|阿拉伯语", "Hindi": "hindi|印地语",
    "Ukrainian": "ukrainian|乌克兰语", "Vietnamese": "vietnamese|越南语", "Swedish": "swedish|瑞典语", "Czech": "czech|捷克语",
}  # fmt: skip
_FORMATS = {
    "JSON": "json", "YAML": "yaml", "CSV": "csv", "Markdown": "markdown", "table": "tables?|表格", "list": r"(?:bullet(?:ed)? )?(?:lists?|points?)|bullets|列表",
    "raw output": "raw output|raw|verbatim output|原始输出|原样", "plain text": "plain text|纯文本", "chart": "charts?|graphs?|图表",
}  # fmt: skip
_LENGTHS = {
    "short": "short|brief|concise|terse|succinct|compact|shorter|简短|简洁|精简|简明|简单|短一?点|言简意赅",
    "detailed": "detailed|verbose|wordy|long-winded|lengthy|long|longer|thorough|in detail|详细|详尽|啰嗦|冗长|具体一?点|细一?点",
}  # fmt: skip
_UNITS = "GiB|MiB|GB|MB|KiB|TiB|celsius|fahrenheit|摄氏度?|华氏度?"
_ANSWERS = r"answers?|repl(?:y|ies)|respon[ds]\w{0,5}|write|speak|talk|explain|language|messages?|communicat\w{1,4}|回答|回复|答复|回我|说|讲|交流|沟通|解释|语言|写|输出"
_TOO = re.compile(
    r"\b(?:don't|do not|dont|never|stop) be(?:ing)? (?:so |too |that )?(\w{4,12})|\b(?:not|less|no more|no) (?:so |too |that |such )?(\w{4,12}) (?:answers?|replies|explanations?|ones)"
    r"|\b(?:(?:don't|do not) (?:like|want|need)|hate|dislike|can't stand|tired of) (?:so |too |such |overly |your )?(\w{4,12}) (?:answers?|replies|explanations?|ones)"
    r"|(?:别|不要|不用|别再|不要再|不喜欢|讨厌|受不了)(?:再)?(?:你)?(?:这么|那么|太|这样|那样)([\u4e00-\u9fff]{2})",
    re.I,
)
_NEGATED = re.compile(
    r"\b(?:don't|do not|dont|never|no|not|stop|without|avoid|hate|dislike)\b|不要|别|不用|不再|禁止|讨厌|不喜欢|不想|勿|不许|永远不",
    re.I,
)
_DENIED = r"\b(?:don't|do not|never|stop|no more|no longer)\b|不要|别|不再|不许|不用|禁止"
_DEFAULT_OF = {
    "namespace": "namespace|ns|命名空间", "cluster": "cluster|集群", "branch": "branch|分支", "host": "host|server|machine|box|主机|机器|服务器",
    "environment": "environment|env|环境", "region": "region|地域|区域", "context": "context|上下文", "database": "database|数据库", "project": "project|项目",
    "repository": "repo(?:sitory)?|仓库", "channel": "channel|频道",
}  # fmt: skip
_NAME = r"[A-Za-z0-9][\w./:-]{0,60}"
_SCOPE = re.compile(
    r"\b(?:when(?:ever)?|if|each time|every time|before|after) (?:i |you |we |it )?[^,.]{3,60}"
    r"|\bon (?:the |all )?(?!default\b)[\w-]{1,30} (?:hosts?|servers?|boxes|machines|cluster)\b|\bfor (?:the )?[\w-]{2,30} (?:questions?|hosts?|reports?|logs?|incidents?)\b"
    r"|(?:查|看|说|问|重启|执行|跑|在)[^，,。]{1,16}(?:的时候|时候|时)|在[^，,。]{1,16}上",
    re.I,
)
_INSTEAD = re.compile(
    rf"\b(?:use |using |prefer )(?P<new>{_NAME})(?:,)? (?:instead of|rather than|over|in place of|and not|not) (?:using )?(?P<old>{_NAME})"
    rf"|用 ?(?P<new_zh>{_NAME})[ ，,]{{0,3}}(?:不要?用|别用|代替|而不是|不用|替代|取代) ?(?P<old_zh>{_NAME})"
    rf"|\buse (?P<new2>{_NAME}), not (?P<old2>{_NAME})",
    re.I,
)
_ZONE = re.compile(
    r"\b(?:(?:Africa|America|Asia|Atlantic|Australia|Europe|Pacific|Indian)/[A-Za-z_]{2,30}|UTC(?:[+-][0-9]{1,2})?|GMT(?:[+-][0-9]{1,2})?|CET|CEST|EST|PST|JST|IST|BST)\b"
    r"|北京时间|东八区|东京时间|本地时间|\blocal time\b|UTC"
)


@dataclass(frozen=True, slots=True)
class Matter:
    """What it is about, and the value; says: the sentence for a value that needs none of the person's words."""

    attribute: str
    value: str
    says: str = ""
    says_zh: str = ""


def matters(text: str) -> Iterator[Matter]:
    """The known matters of a sentence that states a preference, the sharpest first."""
    scope = _scope(text)
    no = bool(_NEGATED.search(text))
    if (found := _one_of(_LANGUAGES, text)) and re.search(
        rf"\b(?:in|use|speak|prefer|switch|back to)\b|用|换|改|切|都|{_ANSWERS}", text, re.I
    ):
        yield _language(*found, text, scope)
        return
    hit = _INSTEAD.search(text)
    pair = [hit[g] for g in ("new", "old", "new_zh", "old_zh", "new2", "old2") if hit[g]] if hit else []
    if pair and not _one_of(_FORMATS, pair[0]):
        yield Matter(f"tool instead of {pair[1].lower()}{scope}", pair[0])
        return
    for what, pattern in (("sudo", r"\bsudo\b"), ("emojis", r"\bemojis?\b|表情")):
        if re.search(pattern, text, re.I):
            yield Matter(what + scope, "no" if no else "yes")
            return
    if (hit := _ZONE.search(text)) and re.search(
        r"\b(?:time|times|timestamps?|dates?|zone|timezone)\b|时间|时区|时刻", text, re.I
    ):
        yield Matter("time zone" + scope, hit[0])
        return
    if hit := re.search(rf"(?<![A-Za-z])(?:{_UNITS})(?![A-Za-z])", text):
        yield Matter("units" + scope, hit[0])
        return
    for what, words in _DEFAULT_OF.items():
        if name := _default(what, words, text):
            yield Matter(f"default {what}{scope}", name)
            return
    if (length := _length(text)) and re.search(
        r"\b(?:answers?|repl|respon|explan|summar|be|keep|writ|output|ones)\w{0,6}\b|回答|回复|答复|输出|结论|一点|些|说明|报告|[这那太]么?",
        text,
        re.I,
    ):
        yield Matter("answer length" + scope, length)
        return
    if (found := _one_of(_FORMATS, text)) and re.search(
        r"\b(?:answers?|output|show|use|format|as|in|prefer|give|with|print|over|like|no more|ones)\b|输出|格式|用|显示|展示|看",
        text,
        re.I,
    ):
        first = text.find(found[1]) if no else -1
        yield Matter(
            "output format" + scope,
            f"no {found[0]}"
            if no and first >= 0 and not re.search(r"\bover\b|instead|rather", text)
            else found[0],
        )
        return
    if hit := re.search(r"\b(vim?|neovim|nvim|nano|emacs|vscode|vs code|helix|micro|ed)\b", text, re.I):
        yield Matter("editor" + scope, hit[1].lower())


def _length(text: str) -> str | None:
    """One length wished, or the other one denied: "not so short" is detailed."""
    denied = [hit[hit.lastindex or 0] for hit in _TOO.finditer(text)]
    for word in denied:
        text = text.replace(word, "")
    if found := _one_of(_LENGTHS, text):
        return found[0]
    other = _one_of(_LENGTHS, " ".join(denied))
    return {"short": "detailed", "detailed": "short"}[other[0]] if other else None


def _language(language: str, word: str, text: str, scope: str) -> Matter:
    if re.search(rf"(?:{_DENIED})[^,;，；。]{{0,25}}{re.escape(word)}", text, re.I):
        says = f"Does not want answers in {language}{scope}."
        return Matter("answer language" + scope, f"not {language}", says, f"不要用{word}回答{scope}。")
    says = f"Prefers answers in {language}{scope}."
    return Matter("answer language" + scope, language, says, f"偏好用{word}回答{scope}。")


def free(text: str) -> Matter:
    """A preference of its own: the key is made of what it is about, so that the same words meet again."""
    key = " ".join(sorted(content(text))[:8]) or text.lower()[:80]
    return Matter(key[:120], text[:200])


def _scope(text: str) -> str:
    hit = _SCOPE.search(text)
    return f" ({' '.join(hit[0].lower().split())[:60]})" if hit else ""


def _one_of(table: dict[str, str], text: str) -> tuple[str, str] | None:
    """The name and the word that stands last: "not in German but in French" is French."""
    hits = []
    for name, pattern in table.items():
        for hit in re.finditer(rf"(?<![A-Za-z])(?:{pattern})(?![A-Za-z])", text, re.I):
            before = text[max(0, hit.start() - 12) : hit.start()]
            denied = bool(
                re.search(
                    r"\bnot (?:in |to )?$|\bover (?:bullet )?$|instead of $|rather than $|(?:不要?用?|别用?|不是)\s?$",
                    before,
                    re.I,
                )
            )
            hits.append((not denied, -hit.start(), name, hit[0]))
    return max(hits)[2:] if hits else None


def _default(what: str, words: str, text: str) -> str | None:
    bare = r"(?!(?:default|the|my|a|an|in|on|for|it|this|that|always|first|is|and)\b)"
    hit = (
        re.search(rf"\bdefault (?:{words}) (?:is|to|should be|:) ?({_NAME})", text, re.I)
        or re.search(rf"\b(?:use|using|in|on|at) (?:the )?(?:{words}) {bare}({_NAME})", text, re.I)
        or re.search(
            rf"\b(?:use|look at|check|in|on|at|with|mean|means|start with) (?:the )?{bare}({_NAME}) (?:{words})\b",
            text,
            re.I,
        )
        or re.search(rf"\b(?:mean|means) (?:the )?(?:{words}) ({_NAME})", text, re.I)
        or (re.search(rf"\bmy (?:{words}) is ({_NAME})", text, re.I) if what != "host" else None)
        or re.search(
            rf"默认的?(?:{words})(?:就?是|用|为|改成|改为|换成|设为|设成|改用|定为) ?[“\"「]?({_NAME})",
            text,
            re.I,
        )
        or re.search(
            rf"(?:看|用|使用|查|在|连|走|到|选) ?({_NAME}) ?(?:这个|这台|那个|的)?(?:{words})", text, re.I
        )
        or re.search(rf"(?:用|看|查|连) ?(?:{words}) ?({_NAME})", text, re.I)
    )
    return hit[1].rstrip(".,") if hit else None
