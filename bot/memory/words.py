"""Words of a sentence, folded so that two ways to say the same compare: English words, pairs of Chinese characters."""

from __future__ import annotations

import re
import unicodedata

_TOKEN = re.compile(r"[a-z0-9][a-z0-9_./:@+'-]{0,80}|[\u4e00-\u9fff]{1,200}")
_STOP = frozenset(
    [
        "a",
        "an",
        "the",
        "to",
        "of",
        "in",
        "on",
        "at",
        "for",
        "with",
        "and",
        "or",
        "but",
        "that",
        "this",
        "it",
        "is",
        "are",
        "be",
        "been",
        "do",
        "does",
        "did",
        "i",
        "me",
        "my",
        "you",
        "your",
        "we",
        "us",
        "our",
        "please",
        "always",
        "never",
        "ever",
        "by",
        "default",
        "from",
        "now",
        "going",
        "forward",
        "future",
        "remember",
        "keep",
        "mind",
        "want",
        "wants",
        "would",
        "like",
        "can",
        "should",
        "must",
        "use",
        "using",
        "used",
        "when",
        "if",
        "so",
        "as",
        "not",
        "no",
        "don't",
        "dont",
        "about",
        "any",
        "more",
        "anymore",
        "longer",
        "need",
        "have",
        "has",
        "them",
        "their",
        "all",
        "every",
        "each",
        "time",
        "also",
        "just",
        "only",
        "instead",
        "than",
        "rather",
        "prefer",
        "preferred",
        "really",
        "i'd",
        "i'm",
        "said",
        "was",
        "thing",
        "things",
        "will",
    ]
)
_ENDING = re.compile(r"(?<=[a-z]{3})(?:ing|ed|es|e|s)$")
_ZH_STOP = re.compile(
    r"以后|今后|往后|从现在起|从现在开始|默认|记住|记得|每次|不要再|不要|别再|总是|始终|一直|永远|请|都|用|我的|我|你|的|了|吧|就|要|是|把|再"
    r"|给|那个|这个|刚才|之前|关于|不用|不需要|取消|忘掉|忘了|设置|偏好|要求|说过|说|还是|一律|千万|统一|改成|改为|一点|更|喜欢"
)


def fold(text: str) -> str:
    """One form of width and case, spaces evened out."""
    return " ".join(unicodedata.normalize("NFKC", text).lower().split())


def content(text: str) -> frozenset[str]:
    """What a sentence is about: words that carry meaning, Chinese as pairs of characters (one alone stays)."""
    found: set[str] = set()
    for token in _TOKEN.findall(fold(text)):
        if token[0] >= "\u4e00":
            for run in _ZH_STOP.split(token):
                found.update(run[at : at + 2] for at in range(len(run) - 1)) if len(
                    run
                ) > 1 else found.update(run)
            continue
        word = token.rstrip(".:'/-")
        if word and word not in _STOP:
            found.add(word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word)
    return frozenset(found)


def stems(words: frozenset[str]) -> frozenset[str]:
    """Words without their endings, to compare by: page, paged, paging. Names with digits or signs stay."""
    return frozenset(_ENDING.sub("", word) if word.isalpha() and word.isascii() else word for word in words)


def alike(one: frozenset[str], other: frozenset[str]) -> float:
    """The share of words that two sentences have in common, 0 to 1."""
    return len(one & other) / len(one | other) if one or other else 0.0


def chinese(text: str) -> bool:
    """Whether a text is Chinese: it has Chinese characters, and they are no mere citation in an English one."""
    signs = sum("\u4e00" <= sign <= "\u9fff" for sign in text)
    return signs * 4 >= sum(sign.isascii() and sign.isalpha() for sign in text) and signs > 0
