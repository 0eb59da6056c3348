"""One spelling for the rules to read: traditional characters as simplified, slips of the keyboard in signal words mended.

What is kept is still the person's own spelling.
"""

from __future__ import annotations

import re

_TRADITIONAL = (
    "後后請请記记預预設设認认語语體体復复覆复簡简詳详細细輸输麼么別别還还這这從从開开會会說说話话時时間间區区機机誌志"
    "給给帶带啟启動动刪删問问關关當当沒没過过習习慣惯歡欢總总統统號号個个對对錯错誤误嗎吗為为裡里裏里環环實实務务"
    "員员網网讓让應应該该須须單单檔档庫库資资報报幫帮標标無无將将與与並并們们規规則则條条約约麗丽東东點点書书長长"
    "顯显圖图電电線线輕轻議议論论訴诉樣样絕绝備备執执來来數数據据處处繼继續续聽听歷历變变換换貼贴連连終终結结"
)
_SIMPLE = str.maketrans(_TRADITIONAL[::2], _TRADITIONAL[1::2])
_SIGNALS = ("always", "remember", "default", "prefer", "forward", "anymore")
_WORD = re.compile(r"[A-Za-z]{5,10}")
_PHRASES = re.compile(r"\b(?:f[ro]{1,2}m|fron|frm) n[ow]{1,3} (?=on\b)", re.I)
_SLIPS_ZH = re.compile(
    r"(?:^|(?<=[，,；;。 ]))(?:已后(?!台|端|续)|记的(?=[^，。]{0,6}(?:要|都|先|带|用|别)))"
)


def simplified(text: str) -> str:
    """As long as before, sign by sign."""
    return text.translate(_SIMPLE)


def evened(text: str) -> str:
    """The text as the rules read it."""
    text = _SLIPS_ZH.sub(lambda hit: "记得" if hit[0] == "记的" else "以后", simplified(text))
    return _WORD.sub(lambda hit: _meant(hit[0]), _PHRASES.sub("from now ", text))


def _meant(word: str) -> str:
    low = word.lower()
    return next((signal for signal in _SIGNALS if _slip(low, signal)), word)


def _slip(word: str, meant: str) -> bool:
    """One letter too much, missing, wrong or in its neighbour's place; the first letter is right, no ending is added."""
    if word == meant or word[0] != meant[0] or abs(len(word) - len(meant)) > 1:
        return False
    if word.startswith(meant) or word in ("prefers", "afford"):
        return False
    start = next(
        (at for at, (one, other) in enumerate(zip(word, meant, strict=False)) if one != other), len(word)
    )
    left, right = word[start:], meant[start:]
    return (
        left[1:] == right
        or left == right[1:]
        or left[1:] == right[1:]
        or (left[:2] == right[1::-1] and left[2:] == right[2:])
    )
