"""From a person's message to preferences, and to what it takes back."""

from __future__ import annotations

import re
from collections.abc import Iterator

from bot.memory.gate import to_the_model
from bot.memory.preferences.matters import Matter, free, matters
from bot.memory.preferences.own_words import sentences
from bot.memory.preferences.signals import (
    lifts,
    no_preference,
    said_without_topic,
    signal_at,
    states,
    takes_back,
)
from bot.memory.preferences.spelling import simplified
from bot.memory.records import Found, Heard, TakenBack
from bot.memory.words import chinese, content
from storage.records import MemoryKind

MOST = 20  # preferences of one message
_NOBODY = "user"
_ENGLISH_LEAD = re.compile(
    r"^(?:(?:please|pls|also|and|but|so|ok(?:ay)?|hey|btw|by the way|oh|actually|yes|well|thanks|remember(?: that)?|keep in mind(?: that)?|bear in mind(?: that)?|note(?: that)?|don't forget(?: that)?"
    r"|for future reference|you should|you must|i want you to|i'd like you to|i need you to|(?:can|could|would|will) you|make sure (?:to|you|that you)|be sure to|<@\w{1,20}>)[,:]? ){1,6}",
    re.I,
)
_CUT = re.compile(r"[,;，；] ?(?:and |but |so |also )?")
_REFERS_BACK = re.compile(r".{0,14}(?:这个|这样|那个|它|此)")
_CLOSING = re.compile(
    r",? (?:so )?(?:please )?remember (?:that|this|it)(?: please)?[.!]?$|[，,] ?(?:请|你|要)?(?:记住|记一下|记好)(?:哦|了|吧)?[。!！]?$",
    re.I,
)
_SWAPS = (
    (r"\bI'm\b", "they are"), (r"\bI'd\b", "they would"), (r"\bI've\b", "they have"), (r"\bI am\b", "they are"), (r"\bI\b", "they"),
    (r"\bmy\b", "their"), (r"\bmine\b", "theirs"), (r"\bme\b", "them"), (r"\bmyself\b", "themselves"),
)  # fmt: skip


def preferences(heard: Heard, number: int) -> Iterator[Found | TakenBack]:
    """What one message of a person says of their standing wishes, in the order of its sentences."""
    if to_the_model(heard.text):
        return
    subject = heard.author or _NOBODY
    count = 0
    for sentence in sentences(heard.text):
        text = sentence.text
        if "[redacted:" in text:
            continue
        if takes_back(text):
            back, text = _parts(text)
            if back:
                words = content(said_without_topic(back))
                yield TakenBack(subject, words, not words and _weak(back), number)
        if text and not sentence.quoting and not no_preference(text) and states(text) and count < MOST:
            clause = _clause(text)
            matter = next(matters(simplified(clause)), None) or free(clause)
            if not content(clause):
                continue
            count += 1
            says = _says(clause, matter)
            yield Found(MemoryKind.USER_PREFERENCE, subject, matter.attribute, matter.value, says, "", number)


def _parts(text: str) -> tuple[str, str]:
    """What a sentence takes back, and what it states instead: either may be empty."""
    for cut in list(_CUT.finditer(text))[:10]:
        back, rest = text[: cut.start()], text[cut.end() :]
        if takes_back(back) and states(rest) and not takes_back(rest):
            return back, rest
    return ("", text) if _new_one(text) else (text, "")


def _new_one(text: str) -> bool:
    """ "No longer German, from now on French" states one; "you no longer need to …" only takes back."""
    return (
        bool(re.search(r"\b(?:from now on|instead)\b|以后|今后|从现在起|改用|改成|换成", text, re.I))
        and states(text)
        and not lifts(text)
    )


def _weak(text: str) -> bool:
    """Words that as often end the talk of the moment: they reach only what was said right before."""
    return bool(re.match(r"\W{0,3}(?:never ?mind|cancel|算了|取消|不用了)", text, re.I))


def _clause(text: str) -> str:
    """The sentence from the clause with the signal on, without what only introduces or closes it."""
    text = _CLOSING.sub("", text) or text
    if chinese(text):
        start = signal_at(text)
        start = start if len(text) - start > 8 else 0  # "X，记住": what is to be kept stands before
        start = 0 if _REFERS_BACK.match(text, start) else start
        return re.sub(
            r"^(?:另外|还有|那|顺便|对了|好的?|嗯)[，, ]?", "", text[start:] if start else text
        ).strip(" ，,")
    signal = re.search(
        r"[,;] (?:and |but |so |also )?(?=(?:from now on|always|never|by default|please always|please never|going forward)\b(?!\W*$))",
        text,
        re.I,
    )
    if (
        signal
        and re.match(r"(?:can|could|please|restart|check|show|the|it|ok|thanks|this|i)\b", text, re.I)
        and not re.match(r"(?:when|if|for|on|in)", text, re.I)
    ):
        text = text[signal.end() :]
    return text.strip()


def _says(clause: str, matter: Matter) -> str:
    """One sentence in the third person, near to the person's words and in their language."""
    if chinese(clause):
        if matter.says_zh:
            return matter.says_zh
        plain = re.sub(r"^(?:请|麻烦你?|记住|记得|请记住|记一下)[，,：: ]{0,2}", "", clause).rstrip("。！!. ")
        return f"要求：{plain.replace('我', '本人')}。"
    if matter.says:
        return matter.says
    plain = _ENGLISH_LEAD.sub("", clause).rstrip(".! ") or clause
    if hit := re.match(
        r"I(?:'d| would)? (?:\w{2,10} )?(prefer|want|like|love|hate|dislike|need|expect|use|work)\b(.{0,300})",
        plain,
        re.I,
    ):
        verb = hit[1].lower()
        always = " always" if re.match(r"I always", plain, re.I) else ""
        return f"{'Always ' if always else ''}{verb + 's' if always else (verb + 's').capitalize()}{_third(hit[2])}."
    if hit := re.match(r"I(?:'d| would) (?:much )?rather (.{1,300})", plain, re.I):
        return f"Would rather that {_third(hit[1])}."
    if re.match(r"my\b", plain, re.I):
        return f"Their{_third(plain[2:])}."
    return f"Asked the bot: {_third(plain[:1].lower() + plain[1:] if not plain[:2].isupper() else plain)}."


def _third(text: str) -> str:
    for pattern, word in _SWAPS:
        text = re.sub(pattern, word, text)
    return text
