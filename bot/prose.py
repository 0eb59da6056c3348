"""Pure: words that are not ours, told apart from what we say: fences, lines that imitate us, links that hide."""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Callable

from bot.outside import ALIKE, INVISIBLE

MARK = "(the model's words) "

_FENCE = re.compile(r"^( {0,3})(`{3,16}|~{3,16})([^\n]{0,100})$")
_SPAN = re.compile(r"(?<![`\\])(`{1,16})(?!`)([^\n]{1,2000}?)(?<!`)\1(?!`)")
_ANY_FENCE = re.compile(r"^[^\n`~]{1,}(?:`{3}|~{3})", re.MULTILINE)
_LINK = re.compile(r"\](?=[(:\[])")

_MARKUP = re.compile(r"^(?:[\s>#*_~`|+\-•·–—✓✗○…\\\u00a0]|\d{1,3}[.)]\s)*")
_EMOJI = re.compile(r":[a-z0-9_+-]{1,40}:")
_UNSEEN = re.compile(rf"[{INVISIBLE}\u200c\u200d\ufe00-\ufe0f]")
_OURS = re.compile(
    r"(?:approval (?:needed|\d)|(?:approved|denied|taken back|stopped) by\b|expired (?:at|without)\b|taken back; "
    r"|two different people must|why it asks|asked by\b|approvers?:|to answer: opsthread|beware: the text"
    r"|(?:finding|root cause|change applied|recovered|blocked|conclusion) [·•∙・‧|] ?\d"
    r"|(?:looking into it|going on|waiting for approval|done|stopped|not finished) [·•∙・‧|] ?(?:\d|step|session)"
    r"|\d+ commands? on \S+|\d+ with unknown outcome|named above but not run|session \d+ [·•∙・‧|] "
    r"|\[?opsthread\]?(?::| [·•∙・‧|]|\])|.{1,60} (?:takes up the plan of|asks from a terminal)\b"
    r"|需要(?:审批|批准)|审批(?:通过|已|人)|批准人|已(?:获)?批准|已?由.{1,40}(?:批准|审批))"
)


def marked(text: str, *, code: bool = False) -> str:
    """The same words, with MARK before each line that begins as our cards, notes and evidence lines do.

    code: also in fenced code, where it is not shown in a way of its own.
    """
    out: list[str] = []
    opener: str | None = None
    for line in text.split("\n"):
        after = fence_after(line, opener)
        out.append(_marked(line) if code or (opener is None and after is None) else line)
        opener = after
    return "\n".join(out)


def _marked(line: str) -> str:
    if not _OURS.match(_bare(line)):
        return line
    at = _MARKUP.match(line)
    start = at.end() if at else 0
    return line[:start] + MARK + line[start:]


def _bare(line: str) -> str:
    """As a reader sees it: without markup, emoji, accents, look-alike letters and signs that are not seen."""
    text = _UNSEEN.sub("", html.unescape(line[:400]))
    text = unicodedata.normalize("NFKD", _EMOJI.sub(" ", text)).casefold()
    text = "".join(c for c in text if unicodedata.category(c) != "Mn").translate(ALIKE)
    text = re.sub(r"[*_~`\\]", "", text)
    text = re.sub(r"^(?:\d{1,3}[.)]\s|[^\w\[])+", "", text)
    return " ".join(text.split())


def unlinked(text: str) -> str:
    """Prose without fences: links and images show their address (`[good] (https://…)`); code spans stay."""
    return _outside_code(text, lambda prose: _LINK.sub("] ", prose))


def inert(text: str) -> str:
    """Markdown for a document: as `unlinked`, and no HTML. Fences stay where every reader sees the same ones."""

    def change(prose: str) -> str:
        return _outside_code(prose, lambda part: _LINK.sub("] ", part).replace("<", "&lt;"))

    if _ANY_FENCE.search(text):
        return _LINK.sub("] ", text).replace("<", "&lt;")
    out: list[str] = []
    opener: str | None = None
    for each in text.split("\n"):
        after = fence_after(each, opener)
        out.append(each if opener or after else change(each))
        opener = after
    return "\n".join(out)


def _outside_code(text: str, change: Callable[[str], str]) -> str:
    out: list[str] = []
    at = 0
    for found in _SPAN.finditer(text):
        out += [change(text[at : found.start()]), found[0]]
        at = found.end()
    return "".join([*out, change(text[at:])])


def fence_after(line: str, opener: str | None) -> str | None:
    """The opening line of the code fence that is open after this line, None when none is."""
    found = _FENCE.match(line)
    if not found:
        return opener
    if opener is None:
        return None if found[2][0] == "`" and "`" in found[3] else line
    sign = closer(opener).strip()
    closes = found[2][0] == sign[0] and len(found[2]) >= len(sign) and not found[3].strip()
    return None if closes else opener


def closer(opener: str) -> str:
    """The line that closes the fence which `opener` opened."""
    found = _FENCE.match(opener)
    return found[1] + found[2] if found else ""
