"""Text in and out of Slack, pure: what people typed, what is safe to show, where a long answer is cut.

Facts: docs.slack.dev/messaging/formatting-message-text (entities and the forms in angle brackets). Slack
resolves `<!here>`, `<@U…>` and links inside a markdown block too, so untrusted `<` and `>` are escaped
there while `&` stays.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from bot.prose import closer, fence_after

_ANGLE = re.compile(r"<([^<>\n]+)>")
_SPACES = dict.fromkeys((0x00A0, 0x2007, 0x202F), " ")  # no-break spaces
_ENTITIES = (("&lt;", "<"), ("&gt;", ">"), ("&amp;", "&"))  # & last, else &amp;lt; would turn into <


def plain(raw: str, *, bot_user: str, names: Mapping[str, str]) -> str:
    """What the person meant: entities and Slack's forms undone, our own mention (and no other) taken off.

    names: ids of people -> the name to show; an unknown person stays as their id.
    """

    def form(match: re.Match[str]) -> str:
        body, _, label = match[1].partition("|")
        match body[:1]:
            case "":
                return match[0]  # `<|…>` is no form of Slack's
            case "@":
                if body[1:] == bot_user:
                    return ""
                return "@" + (names.get(body[1:]) or label or body[1:])
            case "#":
                return "#" + (label or body[1:])
            case "!":
                return _special(body[1:], label)
            case _:
                return _link(body, label)

    text = raw
    for own in (f"<@{bot_user}>", f"<@{bot_user}|"):  # with the blank or colon that belongs to it
        if bot_user and own in text:
            text = re.sub(rf"^\s*<@{re.escape(bot_user)}(\|[^<>]*)?>[\s:,，：]*", "", text)
            text = re.sub(rf" ?<@{re.escape(bot_user)}(\|[^<>]*)?>", "", text)
    return _entities(_ANGLE.sub(form, text)).translate(_SPACES).strip()


def _special(body: str, label: str) -> str:
    if body.startswith("subteam^"):
        return label or "@" + body.removeprefix("subteam^")
    if body.startswith("date^"):
        return label or body
    return "@" + (label.removeprefix("@") or body)


def _link(target: str, label: str) -> str:
    if not label:
        return target.removeprefix("mailto:").removeprefix("tel:")
    bare = re.sub(r"^(https?://|mailto:|tel:)", "", target)
    if label in (target, bare, bare.rstrip("/")):
        return label  # Slack made a link of a word; the word is what was typed
    return f"{label} ({target})"


def _entities(text: str) -> str:
    for entity, sign in _ENTITIES:
        text = text.replace(entity, sign)
    return text


def mentions(raw: str) -> tuple[str, ...]:
    """Ids of the people mentioned, in order, each once."""
    return tuple(dict.fromkeys(re.findall(r"<@([A-Z0-9]+)(?:\|[^<>]*)?>", raw)))


def leading_mention(raw: str) -> str | None:
    """The person or group the message begins with (`<@U2> could you…`), else None."""
    found = re.match(r"\s*<(?:@([A-Z0-9]+)|!subteam\^([A-Z0-9]+))(?:\|[^<>]*)?>", raw)
    return (found[1] or found[2]) if found else None


def escape(text: str) -> str:
    """For mrkdwn and top-level text: shown as it is, no mention, no link, no broadcast."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def defuse(text: str) -> str:
    """For a markdown block of words that are not ours: `<` and `>` lose their power."""
    return text.replace("<", "&lt;").replace(">", "&gt;")


def length(text: str) -> int:
    """Characters as Slack may count them: UTF-16 units, the greatest of the usual counts."""
    return len(text) + sum(1 for sign in text if ord(sign) > 0xFFFF)


def weight(text: str) -> int:
    """The length of a text once it is escaped for any of its uses."""
    return length(text) + 3 * (text.count("<") + text.count(">")) + 4 * text.count("&")


# ---- cutting -----------------------------------------------------------------------------------------


def graphemes(text: str) -> Iterator[str]:
    """What a reader sees as one sign each: never cut inside (marks, joined emoji, flags, CRLF)."""
    start, flags = 0, 0
    for i, sign in enumerate(text):
        flags = flags + 1 if _is_flag(sign) else 0
        if i > start and not _joins(text[i - 1], sign, flags):
            yield text[start:i]
            start = i
    if start < len(text):
        yield text[start:]


def _joins(before: str, sign: str, flags: int) -> bool:
    if before == "\r" and sign == "\n":
        return True
    if sign == "\u200d" or before == "\u200d" or "\ufe00" <= sign <= "\ufe0f":
        return True
    if _is_flag(sign):
        return flags % 2 == 0  # the second letter of a flag
    code = ord(sign)
    if 0x1F3FB <= code <= 0x1F3FF or 0xE0020 <= code <= 0xE007F:  # skin tones, tags of regional flags
        return True
    return unicodedata.category(sign) in ("Mn", "Me", "Mc")


def _is_flag(sign: str) -> bool:
    return 0x1F1E6 <= ord(sign) <= 0x1F1FF


def cut(text: str, limit: int) -> list[str]:
    """Pieces of at most `limit` (weighed) whose concatenation is the text; at a blank where one is near."""
    pieces: list[str] = []
    piece: list[str] = []
    size = 0
    for sign in graphemes(text):
        heavy = weight(sign)
        if size + heavy > limit and piece:
            keep = _blank_near_end(piece)
            pieces.append("".join(piece[:keep]))
            piece = piece[keep:]
            size = weight("".join(piece))
        piece.append(sign)
        size += heavy
    if piece:
        pieces.append("".join(piece))
    return pieces


def _blank_near_end(piece: list[str]) -> int:
    for back in range(1, min(200, len(piece) // 2)):
        if piece[-back].isspace():
            return len(piece) - back + 1
    return len(piece)


@dataclass(slots=True)
class _Part:
    """One part being filled. given: lines it began with because a fence was open at the cut."""

    lines: list[str]
    size: int = 0
    given: int = 0

    @classmethod
    def begin(cls, opener: str | None) -> _Part:
        part = cls([])
        if opener is not None:
            part.add(opener)
            part.given = 1
        return part

    def add(self, line: str) -> None:
        self.lines.append(line)
        self.size += weight(line) + 1

    def finish(self, opener: str | None, *, last: bool = False) -> list[str]:
        """Close the open fence, or take its opening back when nothing follows it here; the next part has it.

        last: there is no next part, so what people wrote stays: only an opening that we gave goes.
        """
        ours = not last or len(self.lines) <= self.given
        if opener is not None and self.lines and self.lines[-1] == opener and ours:
            self.lines.pop()
        elif opener is not None:
            self.lines.append(closer(opener))
        text = "\n".join(self.lines)
        return [text] if text.strip() else []


def split(text: str, limit: int) -> list[str]:
    """Ordered parts of at most `limit` (weighed), cut between lines; an open code fence is closed at the
    cut and opened again. Apart from those fences nothing is added; nothing is lost but the line break at
    a cut.
    """
    parts: list[str] = []
    opener: str | None = None  # the line that opened the fence we are in
    part = _Part.begin(None)
    for line in text.split("\n"):
        after = fence_after(line, opener)
        closes = opener is not None and after is None  # always fits: its room was kept
        reserve = weight(closer(after or "")) + 8 if after else 0
        room = limit - weight(opener or "") - reserve - 8
        for n, piece in enumerate([line] if closes else cut(line, room) or [""]):
            full = n > 0 or part.size + weight(piece) + 1 + reserve > limit
            if full and not closes and len(part.lines) > part.given:
                parts += part.finish(opener)
                part = _Part.begin(opener)
            part.add(piece)
        opener = after
    return [*parts, *part.finish(opener, last=True)] or [text]


@dataclass(frozen=True, slots=True)
class Prose:
    text: str


@dataclass(frozen=True, slots=True)
class Code:
    text: str


def pieces(text: str) -> list[Prose | Code]:
    """A text as prose and fenced code, in order: code is shown letter by letter, never read as markup."""
    found: list[Prose | Code] = []
    lines: list[str] = []
    opener: str | None = None

    def flush(kind: type[Prose] | type[Code]) -> None:
        body = "\n".join(lines)
        if body.strip():
            found.append(kind(body if kind is Code else body.strip("\n")))
        lines.clear()

    for line in text.split("\n"):
        after = fence_after(line, opener)
        if opener is None and after is not None:
            flush(Prose)
        elif opener is not None and after is None:
            flush(Code)
        else:
            lines.append(line)
        opener = after
    flush(Code if opener else Prose)
    return found
