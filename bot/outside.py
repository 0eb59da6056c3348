"""Pure: text from outside made ready for the model: cleaned, framed, on one line, names that are no trick.

Everything that did not come from us is data: what commands print, error texts of hosts, names of people, words
of others. A model reads one stream of text, so a frame must be something that data cannot write: every line of
what a command printed begins with FRAME, and no line of ours does.
"""

from __future__ import annotations

import re
import unicodedata

from storage.history import OURS

FRAME = "| "
NAME = 60  # characters of a person's name that are shown

_STRING = r"[^\x07\x1b\n\x80-\x9f]{0,4096}(?:\x07|\x1b\\|\x9c)"
_ESCAPES = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"  # colours, cursor
    rf"|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f]){_STRING}"  # titles, links, clipboard: only what ends on its line
    r"|\x1b[ -/]*[0-~]"
)
_LINE_ENDS = re.compile(r"\r\n?|[\v\f\x1c-\x1e\x85\u2028\u2029]")
_CONTROLS = re.compile(r"[\x00-\x08\x0e-\x1b\x1f\x7f-\x9f\ud800-\udfff]")
# Marks of direction, zero-width signs, fillers, tags and the variation selectors of plane 14, which can
# carry a whole text that nobody sees.
INVISIBLE = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f"
    "\u3164\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
# Joiners and emoji's selectors belong to scripts and emoji: one of them, and not beside ASCII.
_JOINERS = r"[\u200c\u200d\ufe00-\ufe0f]"
_UNSEEN = re.compile(
    rf"[{INVISIBLE}]+|{_JOINERS}{{2,}}|(?<![^\x00-\x7f]){_JOINERS}|\u200c(?![^\x00-\x7f])|\u200d(?![^\x00-\x7f])"
)
# What tokenizers of common models take for the end of a message, a role or a call.
_TOKENS = re.compile(
    r"<(?=\|[^|<>\n]{1,40}\|>|｜[^｜<>\n]{1,40}｜>)"
    r"|<(?=/?(?:s|bos|eos|pad|unk|start_of_turn|end_of_turn|tool_call|tool_response|think)>)"
    r"|\[(?=/?(?:INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS)\])|<(?=</?SYS>>)",
    re.IGNORECASE,
)
_IN_NAMES = re.compile(r"[\[\]<>|`*\"]")
# Cyrillic and Greek letters (without capitals) -> the Latin ones that they look like.
ALIKE = str.maketrans(
    "авекмнорстухіѕԁһԛԝјԍɡαβεικορτυχν",
    "abekmhopctyxisdhqwjggabeikoptuxv",
)


def clean(text: str) -> str:
    """Without escape sequences, control and invisible characters; every kind of line end a newline."""
    text = _ESCAPES.sub("", text.replace("\r\n", "\n"))
    text = _CONTROLS.sub("", _LINE_ENDS.sub("\n", text))
    return text if text.isascii() else _UNSEEN.sub("", text)


def framed(text: str) -> str:
    """Cleaned, every line behind FRAME. The end of the text is the end of its last line."""
    return "\n".join(FRAME + line for line in clean(text).rstrip("\n").split("\n"))


def line(text: str, most: int = 2_000) -> str:
    """Cleaned, on one line of at most `most` characters."""
    plain = " ".join(clean(text).split())
    return plain if len(plain) <= most else plain[: most - 1] + "…"


def name(shown: str, known: str) -> str:
    """A person's name on one line without brackets; `known`, their id, when none is left or it is ours."""
    plain = " ".join(_IN_NAMES.sub("", line(shown, 500)).split())[:NAME].strip()
    letters = "".join(c for c in unicodedata.normalize("NFKC", plain).casefold() if c.isalnum()).translate(
        ALIKE
    )
    return known if not letters or letters.startswith(OURS) else plain


def quiet(text: str) -> str:
    """What a tokenizer might read as a command to it gets a backslash behind its first sign."""
    return _TOKENS.sub(lambda found: found[0] + "\\", text)
