"""Which texts cannot be run at all, because nobody could judge them by looking at them."""

from __future__ import annotations

import re
import unicodedata

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
# Bidirectional marks, zero-width and other invisible characters, no-break and odd spaces, fillers.
_INVISIBLE = re.compile(
    "[\u00a0\u00ad\u034f\u061c\u115f\u1160\u1680\u17b4\u17b5\u180b-\u180f\u2000-\u200f\u202a-\u202f"
    "\u205f-\u206f\u2800\u3000\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\uffff"
    "\ud800-\udfff\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
# Compatibility twins of ASCII: NFKC turns these into ASCII letters, digits or shell punctuation.
_TWINS = re.compile(
    "[\uff02-\uff07\uff0a\uff0b\uff0d-\uff19\uff1c-\uff1e\uff20-\uff5e\u2100-\u214f\u2024\u2044\u2215\u2216\u2223\u2236\u223c\u2474-\u24ff\ufe4d-\ufe6f\U0001d400-\U0001d7ff]"
)
# Dashes, quotes and bars of print: fine in the midst of a quoted text, a trap where shell words are.
_PRINT = re.compile(
    "[\u2010-\u201f\u2032-\u2037\u2039\u203a\u2212\u02b9-\u02df\u00b4\u00a6\u01c0\u05c0\uff01\uff08\uff09\uff0c\uff1a\uff1b\uff1f\uff5f-\uff65]"
)
_LETTERS = re.compile(r"[^\W\d_]+")
_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"")
# Letters of Greek, Cyrillic and Armenian that look like ASCII ones.
_ALIKE = frozenset("АВЕЅІЈКМНОРСТХҮаеѕіјорсухһԁԛԝɡɑıΑΒΕΖΗΙΚΜΝΟΡΤΥΧοναρυՕօՏսոհց")


def unshowable(text: str, longest: int) -> str | None:
    """Why a text cannot be run at all, as nobody could judge it by looking at it; None if it can."""
    if not text.strip(" "):
        return "an empty command"
    if len(text) > longest:
        return f"longer than {longest} characters; split it, or put it into a script on the host"
    if text.isascii() and text.isprintable():
        return None
    if found := _CONTROL.search(text):
        if found[0] in "\n\r":
            return "more than one line; send one line, its commands joined with && or ;"
        return f"holds the control character U+{ord(found[0]):04X}; write it without"
    if found := _INVISIBLE.search(text):
        return f"holds the invisible or odd space character U+{ord(found[0]):04X}; write it without"
    if found := _TWINS.search(text):
        return _alike(found[0])
    outside = _QUOTED.sub(lambda m: " " if not _PRINT.match(m[0][1:]) else m[0], text)
    if found := _PRINT.search(outside):
        return _alike(found[0])
    for run in _LETTERS.findall(text):
        mixed = any(c in _ALIKE for c in run) and (
            any(c < "\x7f" for c in run) or all(c in _ALIKE for c in run)
        )
        if mixed and (bad := next(c for c in run if c in _ALIKE)):
            return _alike(bad)
    return None


def _alike(char: str) -> str:
    name = unicodedata.name(char, "a character")
    return f"holds U+{ord(char):04X} ({name.lower()}), which looks like plain ASCII; write the plain one"
