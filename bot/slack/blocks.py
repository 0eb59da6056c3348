"""Records -> Slack messages within Slack's limits. Pure.

Limits (docs.slack.dev/reference/block-kit/blocks): 50 blocks a message, 3,000 characters a section, 12,000
over all markdown blocks, about 13,200 over all blocks (bolt-js#2509), button text 75 and value 2,000,
text 4,000 advised. Every part stays under 4,000, so that text and blocks both say the whole. No block_id is
set: Slack gives a fresh one at every update, as it wants.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from bot.outside import clean, line
from bot.prose import marked, unlinked
from bot.slack.text import Prose, cut, defuse, escape, pieces, split, weight
from storage.records import MilestoneKind

Block = dict[str, Any]
_ID = re.compile(r"[UWS](?=[A-Z0-9]*[0-9])[A-Z0-9]+")  # Slack's ids; a name such as UMA has no digit

PART = 3_600  # weighed characters of one part; the text under it stays below the advised 4,000
SECTION = 2_800  # of one section of ours
MOST_BLOCKS = 45
APPROVE, DENY, STOP, MEMORIES = "approve", "deny", "stop", "memories"  # what the action ids begin with

_KINDS = {
    MilestoneKind.FINDING: "Finding",
    MilestoneKind.ROOT_CAUSE: "Root cause",
    MilestoneKind.CHANGE: "Change applied",
    MilestoneKind.RECOVERED: "Recovered",
    MilestoneKind.BLOCKED: "Blocked",
    MilestoneKind.CONCLUSION: "Conclusion",
}


@dataclass(frozen=True, slots=True)
class Message:
    """What chat.postMessage and chat.update take. text: for notifications and screen readers, always there."""

    text: str
    blocks: tuple[Block, ...] = ()

    def payload(self, method: str = "chat.postMessage", **extra: Any) -> dict[str, Any]:
        """As the outbox carries it. link_names and parse are never set; links unfurl nothing."""
        quiet = {"unfurl_links": False, "unfurl_media": False} if method == "chat.postMessage" else {}
        return {"method": method, **self.content(), **quiet, **extra}

    def content(self) -> dict[str, Any]:
        """Text and blocks alone."""
        return {"text": self.text, **({"blocks": list(self.blocks)} if self.blocks else {})}


# ---- words ---------------------------------------------------------------------------------------------


def prose(
    text: str, *, title: str = "", footer: str = "", asker: str = "", buttons: Sequence[Block] = ()
) -> list[Message]:
    """Markdown that is not ours, in ordered parts; fenced code is shown letter by letter.

    footer: our line under the last part, buttons below it. asker: a person to be told that it is there.
    """
    parts = split(marked(text), PART) if text.strip() else ["(nothing)"]
    messages = []
    for n, part in enumerate(parts):
        first, last = n == 0, n == len(parts) - 1
        head = title if first else ""
        blocks = _prose_blocks(part, head)
        plain = escape(f"{head} · {part}" if head else part)
        if last and _ID.fullmatch(asker):
            blocks.append(section(who(asker)))
        if last and footer:
            blocks += context(footer)
            plain = f"{plain}\n{escape(footer)}" if weight(footer) + len(plain) < 3_950 else plain
        if last and buttons:
            blocks.append({"type": "actions", "elements": list(buttons)})
        messages.append(Message(plain, tuple(blocks)))
    return messages


def memories_used(turn_id: int, count: int) -> Block:
    """How many memories a turn was given. Which ones and why is told to their person alone, who clicks."""
    label = f"Used {count} memor{'y' if count == 1 else 'ies'}"
    return button(label, f"{MEMORIES}:{turn_id}", str(turn_id))


def _prose_blocks(part: str, head: str) -> list[Block]:
    found = pieces(part)
    if len(found) > MOST_BLOCKS:
        found = [Prose(part)]
    if head and found and isinstance(found[0], Prose):
        found[0] = Prose(f"**{head}** · {found[0].text}")
    elif head:
        found.insert(0, Prose(f"**{head}**"))
    return [_markdown(p.text) if isinstance(p, Prose) else preformatted(p.text) for p in found]


def note(text: str) -> list[Message]:
    """One line of our own words."""
    return [Message(escape(part), (section(escape(part)),)) for part in split(text, SECTION)]


def milestone(kind: MilestoneKind, text: str, at: str) -> list[Message]:
    return prose(text, title=f"{_KINDS[kind]} · {at}")


# ---- the progress message ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Line:
    """One command in the progress message. mark: ✓, ✗, … or –."""

    mark: str
    host: str
    run: str
    tail: str = ""


@dataclass(frozen=True, slots=True)
class Progress:
    """What the one message of a turn shows. stop: the value of its Stop button, None: no button."""

    headline: str
    lines: tuple[Line, ...] = ()
    earlier: int = 0
    plan: tuple[tuple[str, str], ...] = ()
    stop: str | None = None


_PLAN_MARKS = {"todo": "○", "doing": "…", "done": "✓", "dropped": "–"}


def progress(view: Progress) -> Message:
    head = section(escape(short(view.headline, 600)))
    if view.stop is not None:
        head["accessory"] = button("Stop", STOP, view.stop)
    blocks = [head]
    if view.plan:
        steps = [
            f"{_PLAN_MARKS.get(state, '○')} {short(marked(line(step)), 200)}"
            for step, state in view.plan[:12]
        ]
        blocks += context("  ".join(steps))
    if view.lines:
        shown = [
            f"{each.mark} {each.host}  {_one_line(each.run, 260)}   {line(each.tail, 400)}".rstrip()
            for each in view.lines
        ]
        if view.earlier:
            shown.insert(0, f"… {view.earlier} earlier")
        blocks.append(preformatted("\n".join(shown)))
    return Message(escape(short(view.headline, 600)), tuple(blocks))


def _one_line(run: str, limit: int) -> str:
    return short(" ⏎ ".join(clean(run).split("\n")), limit)


def duration(seconds: float) -> str:
    """As people read it: 0.2 s, 41 s, 2 min 5 s."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


def size(count: int) -> str:
    """Bytes as people read them: 812 B, 18 kB, 3.4 MB."""
    if count < 1_000:
        return f"{count} B"
    return f"{count / 1_000:.0f} kB" if count < 1_000_000 else f"{count / 1_000_000:.1f} MB"


# ---- lists ---------------------------------------------------------------------------------------------


def listing(title: str, lines: Iterable[str], *, hint: str = "") -> Message:
    """A heading and lines that are mrkdwn already (escaped by whoever made them), one message."""
    kept, used = [], 0
    for each in lines:
        used += len(each) + 1
        if used > 9_000:
            kept.append("…")
            break
        kept.append(each)
    blocks = [section(f"*{escape(title)}*"), *(section(part) for part in packed(kept))]
    if hint:
        blocks += context(hint)
    return Message(cap("\n".join([escape(title), *kept, *([escape(hint)] if hint else [])])), tuple(blocks))


def link(url: str, label: str) -> str:
    """A link of ours in mrkdwn."""
    return f"<{url}|{escape(label).replace('|', '¦')}>"


def who(person: str) -> str:
    """An id in mrkdwn: people and groups as mentions, OS accounts and unknown ones as they are."""
    if _ID.fullmatch(person):
        return f"<!subteam^{person}>" if person[0] == "S" else f"<@{person}>"
    return escape(person) or "somebody"


# ---- building stones -----------------------------------------------------------------------------------


def section(mrkdwn: str) -> Block:
    """verbatim: Slack makes no links and mentions of its own out of words such as `@here`."""
    return {"type": "section", "text": {"type": "mrkdwn", "text": mrkdwn, "verbatim": True}}


def preformatted(text: str) -> Block:
    """Shown letter by letter; Slack resolves nothing in it."""
    element = {"type": "rich_text_preformatted", "elements": [{"type": "text", "text": text or " "}]}
    return {"type": "rich_text", "elements": [element]}


def _markdown(text: str) -> Block:
    """Words that are not ours, marked where they look like ours; a link shows where it leads."""
    return {"type": "markdown", "text": defuse(unlinked(text))}


def context(text: str) -> list[Block]:
    elements = [{"type": "mrkdwn", "text": escape(part), "verbatim": True} for part in cut(text, 1_900)[:4]]
    return [{"type": "context", "elements": elements}] if elements else []


def button(label: str, action: str, value: str, **extra: Any) -> Block:
    return {"type": "button", "text": plain_text(label), "action_id": action, "value": value, **extra}


def plain_text(text: str) -> Block:
    return {"type": "plain_text", "text": text}


def packed(lines: Iterable[str]) -> list[str]:
    """Lines put together into sections that are as full as they may be."""
    packed: list[str] = []
    for piece in (part for each in lines for part in cut(each, SECTION)):
        if packed and len(packed[-1]) + len(piece) + 1 <= SECTION:
            packed[-1] += "\n" + piece
        else:
            packed.append(piece)
    return packed


def clock(at: datetime) -> str:
    """In each reader's own zone."""
    return f"<!date^{int(at.timestamp())}^{{time}}|{at:%H:%M %Z}>"


def short(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"


def cap(text: str) -> str:
    return short(text, 3_950)
