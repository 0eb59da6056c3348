"""What of a message is the person's own: no code, quotes, pasted logs or forwarded text; cut into sentences."""

from __future__ import annotations

import re
from dataclasses import dataclass

LONGEST = 20_000  # characters of a message that are looked at
LONGEST_SENTENCE = 400
MOST_SENTENCES = 200
_FENCE = "```"
_FORWARDED = re.compile(
    r"(?:-{2,12} ?)?(?:forwarded(?: message| by| from)?\b|fwd?:|original message\b|begin forwarded|转发自|转发[:：]|(?:以下|下面)(?:是|为)?转发"
    r"|原始邮件|from: \S{1,80}@|发件人[:：])",
    re.I,
)
_LOG_LINE = re.compile(
    r"\s{0,8}(?:\[?[0-9]{4}[-/][0-9]{2}[-/][0-9]{2}[T ]|(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) {1,2}[0-9]{1,2} [0-9:]{5,8} "
    r"|\[?(?:INFO|WARN|WARNING|ERROR|DEBUG|FATAL|TRACE)\]?[: ]|(?:[0-9]{1,3}\.){3}[0-9]{1,3} - |[0-9]{2}:[0-9]{2}:[0-9]{2}[ ,.])"
)
_SPOKEN = re.compile(
    r"\b(?:from now|always|never|by default|remember|prefer|don't ever|going forward|ignore)\b"
    r"|以后|默认|记住|每次|不要再|总是|今后|忽略|永远|始终",
    re.I,
)
_QUOTED = (("`", "`"), ("“", "”"), ("「", "」"), ("『", "』"), ('"', '"'), ("«", "»"), ("‘", "’"))
_LONG_QUOTE = 40
_END = re.compile(r"(?<=[.!?])[\"')*]{0,2}\s+|(?<=[。！？])|\n+|(?<=…)\s|(?=🙄)")


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence in the person's words. quoting: it cites something that sounds like a preference."""

    text: str
    quoting: bool


def sentences(message: str) -> list[Sentence]:
    """The sentences that are the person's own, in order."""
    own = _without_quotes_of_others(message[:LONGEST].replace("’", "'").replace("&gt;", ">"))
    found = []
    for part in _END.split(own)[:MOST_SENTENCES]:
        text, quoting = _without_citations(" ".join(part.split()))
        if 2 <= len(text) <= LONGEST_SENTENCE:
            found.append(Sentence(text, quoting))
    return found


def _without_quotes_of_others(message: str) -> str:
    pieces = message.split(_FENCE)
    lines: list[str] = []
    for line in " … ".join(pieces[::2]).split("\n"):
        if _FORWARDED.match(line.strip()):
            break  # all that follows is somebody else's
        if not line.lstrip().startswith((">", "|", "$ ", "# ")) and not _LOG_LINE.match(line):
            lines.append(line)
    return "\n".join(lines)


def _without_citations(text: str) -> tuple[str, bool]:
    """Citations that are long or sound like a preference become "…"; short names in quotes are words of the sentence."""
    quoting = False
    for opening, closing in _QUOTED:
        if opening not in text:
            continue
        out, at = [], 0
        while (start := text.find(opening, at)) >= 0 and (end := text.find(closing, start + 1)) >= 0:
            cited = text[start + 1 : end]
            spoken = bool(_SPOKEN.search(cited))
            if spoken or len(cited) > _LONG_QUOTE:
                quoting |= spoken
                out += [text[at:start], "…"]
            else:
                out.append(text[at : end + 1])
            at = end + 1
        text = "".join(out) + text[at:]
    return text, quoting
