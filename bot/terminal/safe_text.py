"""Text from outside made harmless: it cannot move the cursor, colour, hide or reorder what is shown."""

from __future__ import annotations

import re
import unicodedata

from bot.outside import INVISIBLE

_COLOUR = re.compile(r"\x1b\[[0-9;:]*[mK]")  # what `ls --color` and `grep --color` print
_LINE_ENDS = re.compile(r"\r\n?|[\v\f\x85\u2028\u2029]")
_UNSEEN = re.compile(rf"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff{INVISIBLE}]")
_PLAIN_SPACE = " "


def harmless(text: str) -> str:
    """Prose or output: colour codes go, line ends become newlines, other controls and what nobody
    sees become visible."""
    text = _LINE_ENDS.sub("\n", _COLOUR.sub("", text))
    return _UNSEEN.sub(lambda found: _escaped(found[0]), text)


def exact(text: str) -> str:
    """A command as it would run: nothing is dropped, and everything that cannot be seen is written out.

    Newlines stay; tabs, odd spaces, invisible and control characters become escapes such as `\\x1b`.
    """
    return "".join(_escaped(c) if _unseen(c) else c for c in text)


def one_line(text: str) -> str:
    """The same as `harmless`, on one line."""
    return " ".join(harmless(text).split())


def _unseen(char: str) -> bool:
    if char in (_PLAIN_SPACE, "\n"):
        return False
    return unicodedata.category(char) in ("Cc", "Cf", "Cs", "Co", "Cn", "Zs", "Zl", "Zp")


def _escaped(char: str) -> str:
    code = ord(char)
    if char == "\t":
        return "\\t"
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
