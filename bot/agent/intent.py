"""What a message wants, by rules, English and Chinese: a word about memory, going on, or work. Pure.

A rule must fit the whole message, and a message that holds anything more is work: the model decides what it
means, and learning reads it anyway. So a rule that is missing costs a request to the model, and one that is
wrong would cost an answer.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from enum import StrEnum

LONGEST = 500  # a longer message is work, whatever it begins with


class Intent(StrEnum):
    """WORK is everything that no rule is sure of."""

    WORK = "work"
    CONTINUE = "continue"
    REMEMBER = "remember"
    FORGET = "forget"
    KNOWN = "known"  # what do you know about me
    MEMORIES = "memories"
    SHARE = "share"
    UNSHARE = "unshare"
    PIN = "pin"
    PINNED = "pinned"
    UNPIN = "unpin"
    OFF = "off"  # keep and recall nothing more
    ON = "on"
    MEANT_WORK = "meant work"  # the word before was read wrongly


@dataclass(frozen=True, slots=True)
class Wanted:
    """words: what is to be remembered, forgotten or pinned. ids: numbers of memories, when they were named.

    sure: the person confirmed (`share 12 yes`). page: of a list, from 1.
    """

    intent: Intent
    words: str = ""
    ids: tuple[int, ...] = ()
    sure: bool = False
    page: int = 1


WORK = Wanted(Intent.WORK)

_LEAD = r"(?:(?:please|pls|ok|okay|hey|and|now|请|麻烦你?|帮我|好的?|那)[,，、]?\s*){0,3}"
_END = r"(?:\s*(?:please|thanks|thank you|谢谢|吧|一下))?[\s.。!！?？~]*"
_NUMBERS = r"#?\d{1,15}(?:(?:\s*[,，、]\s*|\s+)(?:(?:and|和)\s+)?#?\d{1,15}){0,20}"
_NUMBERED = (
    (Intent.UNSHARE, r"(?:unshare|stop sharing)", r"(?:取消分享|不再分享)"),
    (Intent.SHARE, r"share", r"分享"),
    (Intent.FORGET, r"(?:forget|delete)", r"(?:忘记|忘掉|忘了|删除)"),
)
_PLAIN = (
    (Intent.CONTINUE, r"continue|go on|carry on|keep going|resume", r"继续(?:下去|进行)?|接着(?:来|做|干)?|往下(?:做|走)"),
    (
        Intent.KNOWN,
        r"what (?:do|did) you (?:know|remember) (?:about|of) me|what have you (?:learnt|learned|stored|kept) about me",
        r"(?:你(?:都)?(?:知道|记得|了解|记住了))(?:些)?(?:关于)?我(?:的)?(?:什么|哪些|啥)?(?:事情?|信息|东西)?|关于我你?(?:都)?(?:知道|记得)(?:些|了)?(?:什么|啥)",
    ),
    (
        Intent.MEMORIES,
        r"(?:(?:show|list)(?: me)? )?(?:(?:all )?(?:of )?my |all )?memories(?: (?:page )?(?P<page>\d{1,4}))?",
        r"(?:查看|列出|显示|看看)?(?:我的|所有的?)?记忆(?:列表)?(?:\s*第?\s*(?P<page_zh>\d{1,4})\s*页?)?",
    ),
    (Intent.PINNED, r"(?:show (?:me )?)?(?:what is |what's |my )?pinned", r"(?:查看|显示)?置顶(?:内容)?"),
    (Intent.UNPIN, r"unpin(?: (?:it|that|everything))?", r"取消置顶"),
    (
        Intent.OFF,
        r"(?:turn )?memory off|(?:opt out|opt me out) of memory|stop remembering (?:things about |anything about )?me"
        r"|(?:do not|don't) remember anything about me",
        r"关闭记忆|(?:不要|别)(?:再)?记(?:住|录)?(?:我的任何(?:事情?|信息|东西)|任何关于我的(?:事情?|信息|东西))",
    ),
    (
        Intent.ON,
        r"(?:turn )?memory on|opt (?:back )?in(?:to| to) memory|(?:start )?remember(?:ing)? things about me again",
        r"(?:打开|开启|恢复)记忆",
    ),
    (
        Intent.MEANT_WORK,
        r"no[,.]? (?:i meant (?:it )?as a question|(?:please )?look into it|work on it|that was a (?:question|request))",
        r"(?:不是|不对)[,，。]?\s*(?:我是?(?:在)?问(?:你)?|帮我(?:查|看)(?:一下|看)?|我(?:是)?要你(?:去)?(?:查|看))",
    ),
)  # fmt: skip
_WORDED = (
    (Intent.PIN, r"pin(?: that|:)?\s+", r"置顶[:：,，]?\s*"),
    (
        Intent.REMEMBER,
        r"(?:remember|note|keep in mind)(?: that\b|[:,])?\s+"
        r"(?!to\b|when\b|how\b|what\b|the time\b|me\b|this\b|it\b|that\b)",
        r"(?:记住|记一下|记着|记下)(?:了)?[:：,，]?\s*(?!这个|它|了)",
    ),
    (
        Intent.FORGET,
        r"forget (?:(?:that|about|what you know about|what i said about|my)\s+)?"
        r"(?!it\b|that\b|this\b|about it\b|everything\b|to\b)",
        r"(?:忘记|忘掉)(?:关于|我的|我说的)?\s*(?!这个|它|吧|了)",
    ),
)
_MORE = re.compile(  # a second request, or a question
    r"[?？\n;；]|[.。!！]\s*\S|\b(?:and|then|also|but)\s+(?:please\s+)?(?:check|show|look|tell|run|restart|see|find|give|list|help)\b"
    r"|\b(?:can|could|would) you\b|然后|顺便|再(?:帮我)?(?:查|看|检查)|帮我(?:查|看)|[,，]\s*(?:查|看|检查)"
    r"|怎么|为什么|多少|哪[里个些台]|(?:吗|呢|什么)[。.!！]*$",
    re.IGNORECASE,
)


def read(text: str) -> Wanted:
    """The intent of a whole message."""
    plain = text.strip()
    if len(plain) > LONGEST or "\n" in plain:
        return WORK
    for rules in (_numbered, _plain, _worded):
        if (wanted := rules(plain)) is not None:
            return wanted
    return WORK


def folded(text: str) -> str:
    """A message as corrections know it."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split()).strip(" .。!！?？~")[:LONGEST]


def _numbered(text: str) -> Wanted | None:
    for intent, english, chinese in _NUMBERED:
        sure = r"(?P<sure>\s+yes)?" if intent is Intent.SHARE else ""
        rule = rf"{_LEAD}(?:{english}(?:\s+(?:memory|memories))?|{chinese}(?:记忆)?)\s*(?P<ids>{_NUMBERS}){sure}{_END}"
        if found := re.fullmatch(rule, text, re.IGNORECASE):
            ids = tuple(dict.fromkeys(int(number) for number in re.findall(r"\d+", found["ids"])))
            return Wanted(intent, ids=ids, sure=bool(found.groupdict().get("sure")))
    return None


def _plain(text: str) -> Wanted | None:
    for intent, english, chinese in _PLAIN:
        if found := re.fullmatch(rf"{_LEAD}(?:{english}|{chinese}){_END}", text, re.IGNORECASE):
            given = found.groupdict()
            page = given.get("page") or given.get("page_zh") or 1
            return Wanted(intent, page=max(1, int(page)))
    return None


def _worded(text: str) -> Wanted | None:
    for intent, english, chinese in _WORDED:
        if found := re.match(rf"{_LEAD}(?:{english}|{chinese})", text, re.IGNORECASE):
            words = text[found.end() :].strip().rstrip(".。!！~")
            if words and not _MORE.search(text[found.end() :]):
                return Wanted(intent, words)
    return None
