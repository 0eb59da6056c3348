"""An approval -> its card in the thread, built from our own words and the stored record only. Pure."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import tzinfo
from typing import assert_never

from bot.outside import line
from bot.slack.blocks import (
    APPROVE,
    DENY,
    SECTION,
    Block,
    Message,
    button,
    cap,
    clock,
    packed,
    plain_text,
    preformatted,
    section,
    short,
    who,
)
from bot.slack.text import cut, escape, weight
from storage.records import Approval, ApprovalState

SPACE = "␠"  # for each of several spaces in a row: a gap can hide what stands behind it
_SPACES = re.compile(" {2,}")
CARD = 8_500  # weighed characters of hosts and text on one message; what does not fit stands before it


@dataclass(frozen=True, slots=True)
class _Piece:
    block: Block
    plain: str


def approval_card(
    approval: Approval, approvers: Sequence[str], *, zone: tzinfo, said: str = ""
) -> list[Message]:
    """The question: every host and account, the exact text, why it asks, who may answer, until when.

    said: the message that led to it, of which the beginning is shown.

    Nothing is shortened: what does not fit one message stands in messages before it. The last message
    holds the buttons, which carry the approval's token.
    """
    *before, last = _messages(approval)
    until = approval.expires_at.astimezone(zone)
    lines = [
        *(
            [f"*Two different people must approve it*: {escape(approval.danger)}"]
            if approval.needs > 1
            else []
        ),
        f"Why it asks: {escape(line(approval.reason))}",
        f"Asked by {who(approval.requester)} · ends after {approval.limit_s} s · expires {clock(until)}",
        *([f"The message: “{escape(line(said, 200))}”"] if said.strip() else []),
        f"Approvers: {', '.join(who(each) for each in approvers)}"
        if approvers
        else "The access rule names no approvers, so nobody can approve it here.",
    ]
    messages = [
        Message(
            cap("Approval needed, part " + f"{n} of {len(before) + 1}\n" + "\n".join(p.plain for p in part)),
            (section(f"*Approval needed* · part {n} of {len(before) + 1}"), *(p.block for p in part)),
        )
        for n, part in enumerate(before, start=1)
    ]
    title = (
        f"*Approval needed* · part {len(before) + 1} of {len(before) + 1}" if before else "*Approval needed*"
    )
    blocks = [
        section(title),
        *(piece.block for piece in last),
        *(section(each) for each in _hidden(approval.run)),
        *(section(part) for each in lines for part in cut(each, SECTION)),
        _buttons(approval),
    ]
    text = (
        f"Approval needed {_where(approval)}: {escape(short(approval.run, 2_000))} (until {until:%H:%M %Z})"
    )
    return [*messages, Message(cap(text), tuple(blocks))]


def approval_closed(approval: Approval, by: str, *, zone: tzinfo) -> Message:
    """The card once it is answered: who and when, still the hosts and the exact text, no buttons."""
    at = (approval.decided_at or approval.expires_at).astimezone(zone)
    match approval.state:
        case ApprovalState.APPROVED | ApprovalState.USED:
            headed, plain = f"*Approved* by {who(by)} at {clock(at)}", f"Approved by {who(by)} at {at:%H:%M}"
        case ApprovalState.DENIED:
            headed = f"*Denied* by {who(by)} at {clock(at)}; nothing ran"
            plain = f"Denied by {who(by)} at {at:%H:%M}; nothing ran"
        case ApprovalState.EXPIRED:
            headed = f"*Expired* at {clock(at)} without an answer; nothing ran"
            plain = f"Expired at {at:%H:%M} without an answer; nothing ran"
        case ApprovalState.REVOKED:
            headed, plain = "*Taken back*; nothing ran", "Taken back; nothing ran"
        case ApprovalState.OPEN:
            headed = plain = "Still open"
        case _:
            assert_never(approval.state)
    last = _messages(approval)[-1]
    text = f"{plain} · {_where(approval)}: {escape(short(approval.run, 2_000))}"
    return Message(cap(text), (section(headed), *(piece.block for piece in last)))


def _messages(approval: Approval) -> list[list[_Piece]]:
    """Hosts and text in order, over as few messages as hold them; the last one is filled first."""
    hosts = [
        f"On *{escape(host.name)}* as {escape(host.user)}: ({escape(host.address)}:{host.port}"
        + (f", through {escape(', '.join(bastion(each) for each in host.route))})" if host.route else ")")
        for host in approval.hosts
    ]
    pieces = [_Piece(section(part), part) for part in packed(hosts)]
    shown = _SPACES.sub(lambda run: SPACE * len(run[0]), approval.run)
    pieces += [_Piece(preformatted(part), escape(part)) for part in cut(shown, SECTION) or [" "]]
    messages: list[list[_Piece]] = [[]]
    used = 0
    for piece in reversed(pieces):
        heavy = weight(piece.plain)
        if messages[0] and used + heavy > CARD:
            messages.insert(0, [])
            used = 0
        messages[0].insert(0, piece)
        used += heavy
    return messages


def bastion(route: str) -> str:
    """Its name and address, without the key that is bound with it."""
    return route.rpartition(" ")[0]


def _where(approval: Approval) -> str:
    names = [f"{host.name} as {host.user}" for host in approval.hosts]
    more = f" and {len(names) - 10} more" if len(names) > 10 else ""
    return "on " + escape(", ".join(names[:10])) + more


def _hidden(run: str) -> list[str]:
    """Signs a reader cannot see, by name: a card must not look like another command."""
    odd = sorted(
        {s for s in run if unicodedata.category(s) in ("Cc", "Cf", "Co", "Zl", "Zp") and s not in "\n\t"}
    )
    named = ", ".join(f"U+{ord(s):04X} {unicodedata.name(s, '')}".strip() for s in odd[:20])
    lines = [f"Beware: the text holds signs that cannot be seen: {named}"] if odd else []
    return [*lines, f"{SPACE} stands for a space"] if _SPACES.search(run) else lines


def _buttons(approval: Approval) -> Block:
    names = ", ".join(host.name for host in approval.hosts)
    sure = {
        "title": plain_text("Run it?"),
        "text": plain_text(short(f"{short(approval.run, 180)} — on {names}", 290)),
        "confirm": plain_text("Approve"),
        "deny": plain_text("Cancel"),
    }
    return {
        "type": "actions",
        "elements": [
            button("Approve", APPROVE, approval.token, style="primary", confirm=sure),
            button("Deny", DENY, approval.token, style="danger"),
        ],
    }
