"""A session as a sober post-mortem in Markdown: what happened when, what was run and changed, who decided."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime

from bot.outside import clean
from bot.prose import inert
from bot.terminal.safe_text import harmless
from storage.history import OURS
from storage.records import (
    Approval,
    ApprovalState,
    Command,
    CommandState,
    Message,
    Milestone,
    MilestoneKind,
    Role,
    Session,
)

_QUOTED = 200  # characters of a message in the timeline; the conversation below has all of it


def render(
    session: Session,
    *,
    messages: Sequence[Message],
    milestones: Sequence[Milestone],
    commands: Sequence[Command],
    approvals: Sequence[Approval],
) -> str:
    """The document. Times are UTC. Outputs of commands are left out: `sessions output` has them."""
    parts = [
        f"# {_inline(session.title) or f'Session {session.id}'}",
        _facts(session, commands),
        "## Summary\n\n" + _summary(messages, milestones),
        "## Timeline (UTC)\n\n" + _timeline(messages, milestones, commands, approvals),
    ]
    if approvals:
        parts.append("## Changes and approvals\n\n" + "\n\n".join(_approval(a, commands) for a in approvals))
    if commands:
        parts.append("## Commands\n\n" + _commands(commands))
    said = [m for m in messages if m.role is not Role.TOOL and m.text.strip() and m.author != OURS]
    if said:
        parts.append("## Conversation\n\n" + "\n\n".join(_message(m) for m in said))
    return harmless("\n\n".join(parts)) + "\n"


def _facts(session: Session, commands: Sequence[Command]) -> str:
    hosts = dict.fromkeys([*session.hosts, *(command.host for command in commands)])
    rows = [
        ("Session", f"{session.id} ({session.origin}, {_inline(session.key)})"),
        ("From", _time(session.created_at)),
        ("To", _time(session.updated_at)),
        ("People", ", ".join(map(_inline, session.people)) or "none"),
        ("Hosts", ", ".join(map(_inline, hosts)) or "none"),
    ]
    return "\n".join(f"- {name}: {value}" for name, value in rows)


def _summary(messages: Sequence[Message], milestones: Sequence[Milestone]) -> str:
    told = [m for m in milestones if m.kind in (MilestoneKind.ROOT_CAUSE, MilestoneKind.RECOVERED)]
    lines = [f"- {_kind(m.kind)}: {_inline(m.text)}" for m in told]
    answers = [
        m.text.strip() for m in messages if m.role is Role.ASSISTANT and not m.tool_calls and m.text.strip()
    ]
    if answers:
        lines += ["", _quote(answers[-1])] if lines else [_quote(answers[-1])]
    return "\n".join(lines) or "No conclusion was reached."


def _timeline(
    messages: Sequence[Message],
    milestones: Sequence[Milestone],
    commands: Sequence[Command],
    approvals: Sequence[Approval],
) -> str:
    events: list[tuple[datetime | None, str]] = [
        *(
            (m.created_at, f"{_inline(m.author) or 'user'}: {_short(m.text)}")
            for m in messages
            if m.role is Role.USER and m.author != OURS
        ),
        *((m.created_at, f"**{_kind(m.kind)}**: {_short(m.text)}") for m in milestones),
        *((c.created_at, f"{_inline(c.host)}: {_code(c.run)}, {_outcome(c)}") for c in commands),
        *((a.created_at, f"approval {a.id} asked: {_code(a.run)} on {_hosts(a)}") for a in approvals),
        *((a.decided_at, f"approval {a.id}: {_decided(a)}") for a in approvals),
    ]
    timed = sorted(((at, text) for at, text in events if at), key=lambda event: event[0])
    return "\n".join(f"- {_time(at)} {text}" for at, text in timed) or "Nothing was recorded."


def _hosts(approval: Approval) -> str:
    return ", ".join(_inline(host.name) for host in approval.hosts)


def _approval(approval: Approval, commands: Sequence[Command]) -> str:
    hosts = ", ".join(f"{_inline(h.name)} as {_inline(h.user)}" for h in approval.hosts)
    ran = [c for c in commands if c.approval_id == approval.id]
    outcome = "; ".join(f"{_inline(c.host)}: {_outcome(c)}" for c in ran) or "not run"
    return "\n".join(
        [
            f"### Approval {approval.id}: {_decided(approval)}",
            "",
            _fence(approval.run),
            "",
            f"- On: {hosts}",
            f"- Why: {_inline(approval.purpose) or 'not said'} (needed a yes because: {_inline(approval.reason)})",
            f"- Asked by: {_inline(approval.requester)}, {_time(approval.created_at)}",
            f"- Outcome: {outcome}",
        ]
    )


def _decided(approval: Approval) -> str:
    by = f" by {_inline(approval.decided_by)}" if approval.decided_by else ""
    word = "approved and carried out" if approval.state is ApprovalState.USED else approval.state.value
    return f"{word}{by}"


def _commands(commands: Sequence[Command]) -> str:
    rows = ["| # | Host | Command | Outcome | Seconds |", "| --- | --- | --- | --- | --- |"]
    for c in commands:
        seconds = "" if c.seconds is None else f"{c.seconds:.1f}"
        run = _code(c.run).replace("|", "\\|")
        rows.append(f"| {c.id} | {_inline(c.host)} | {run} | {_outcome(c)} | {seconds} |")
    return "\n".join(rows)


def _outcome(command: Command) -> str:
    if command.state is CommandState.RUNNING:
        return "still running"
    if command.state is CommandState.UNKNOWN:
        return f"outcome unknown ({_inline(command.note)})" if command.note else "outcome unknown"
    if command.signal:
        return f"ended by signal {_inline(command.signal)}"
    if command.exit_status is None:
        return _inline(command.note) or "not run"
    return f"exit {command.exit_status}"


def _message(message: Message) -> str:
    who = _inline(message.author) or ("opsthread" if message.role is Role.ASSISTANT else "user")
    at = f", {_time(message.created_at)}" if message.created_at else ""
    return f"**{who}**{at}\n\n{_quote(message.text.strip())}"


def _kind(kind: MilestoneKind) -> str:
    return kind.value.replace("_", " ")


def _time(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M:%S}"


def _quote(text: str) -> str:
    """Words of people and of the model, as a block: their links show where they lead, their HTML is text."""
    return "\n".join(f"> {line}".rstrip() for line in inert(clean(text)).split("\n"))


def _short(text: str) -> str:
    line = " ".join(text.split())
    return _inline(line if len(line) <= _QUOTED else line[: _QUOTED - 1] + "…")


def _inline(text: str | None) -> str:
    """Text of people within a line: signs that Markdown would act on are escaped."""
    return re.sub(r"([\\`*_\[\]<>|#])", r"\\\1", " ".join((text or "").split()))


def _code(text: str) -> str:
    """Code within a line, in more backticks than it holds."""
    line = " ".join(text.split("\n"))
    ticks = "`" * (max((len(run) for run in re.findall("`+", line)), default=0) + 1)
    pad = " " if line.startswith("`") or line.endswith("`") else ""
    return f"{ticks}{pad}{line}{pad}{ticks}"


def _fence(text: str) -> str:
    ticks = "`" * max(3, max((len(run) for run in re.findall("`+", text)), default=0) + 1)
    return f"{ticks}sh\n{text}\n{ticks}"
