"""The records that pass between the layers, and the closed sets in them. No SQLAlchemy here.

One word per thing (docs/architecture.md, Glossary): session, turn, step, call, command, verdict,
approval, milestone, memory, post. Times are aware UTC datetimes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

LOCAL_TEAM = "local"  # team of sessions that no Slack workspace owns


class Role(StrEnum):
    """Who a stored message speaks for. System text is built fresh for every request and never stored."""

    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


class Origin(StrEnum):
    """Where a session was opened. Together with team and key it names the session."""

    SLACK = "slack"
    TERMINAL = "terminal"
    IMPORT = "import"
    SCHEDULE = "schedule"


class Front(StrEnum):
    """Which kind of process works on a turn: `serve` takes Slack turns, a terminal takes its own."""

    SLACK = "slack"
    TERMINAL = "terminal"


class TurnState(StrEnum):
    """queued -> running -> (waiting -> ready -> running)* -> done | failed | stopped."""

    QUEUED = "queued"
    RUNNING = "running"
    WAITING = "waiting"  # an approval is open; no process holds the turn
    READY = "ready"  # the approval was decided; a process may go on
    DONE = "done"
    FAILED = "failed"
    STOPPED = "stopped"


class MilestoneKind(StrEnum):
    """An event in a session worth a notification."""

    FINDING = "finding"
    ROOT_CAUSE = "root_cause"
    CHANGE = "change"
    RECOVERED = "recovered"
    BLOCKED = "blocked"
    CONCLUSION = "conclusion"


class MilestoneSource(StrEnum):
    RULE = "rule"
    TOOL = "tool"


class Decision(StrEnum):
    """What the gate says of a command."""

    ALLOW = "allow"
    ASK = "ask"
    DENY = "deny"


class CommandState(StrEnum):
    """running (claimed before anything is sent, so it may have been sent) -> done | unknown."""

    RUNNING = "running"
    DONE = "done"
    UNKNOWN = "unknown"


class ApprovalState(StrEnum):
    """open -> approved -> used, or open -> denied | expired | revoked. Nothing leaves an end state."""

    OPEN = "open"
    APPROVED = "approved"
    DENIED = "denied"
    EXPIRED = "expired"
    REVOKED = "revoked"
    USED = "used"


class PostState(StrEnum):
    """new -> sending -> sent | failed. `sending` after a crash means: look before posting again."""

    NEW = "new"
    SENDING = "sending"
    SENT = "sent"
    FAILED = "failed"


class MemoryKind(StrEnum):
    """What a memory tells of."""

    USER_PREFERENCE = "USER_PREFERENCE"
    ENVIRONMENT_FACT = "ENVIRONMENT_FACT"  # OS and kernel among them
    SOFTWARE_FACT = "SOFTWARE_FACT"  # versions of programs
    TROUBLESHOOTING_CASE = "TROUBLESHOOTING_CASE"


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One tool call of a model's reply. `arguments` is the text the model sent, valid JSON or not."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Message:
    """One row of a session's history. Before it is stored, id, seq, parent_id and created_at are None."""

    role: Role
    text: str
    author: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None
    turn_id: int | None = None
    id: int | None = None
    seq: int | None = None
    parent_id: int | None = None
    created_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Session:
    """One Slack thread or one terminal conversation.

    key: for Slack `channel:root ts`; else whatever the origin made up. `head_id` is the current leaf:
    the active history is the walk from it to the root.
    """

    id: int
    team: str
    origin: Origin
    key: str
    title: str
    owner: str  # the person whose session it is: `U…` or `local:<account>`, or what --user named
    channel: str
    thread_ts: str | None
    head_id: int | None
    last_seq: int
    people: tuple[str, ...]
    hosts: tuple[str, ...]
    archived: bool
    created_at: datetime
    updated_at: datetime
    state: str = "idle"  # idle | the most urgent state of its unfinished turns


@dataclass(frozen=True, slots=True)
class Turn:
    """From a person's message to the answer.

    person: who started it and whose rights apply (`U…`, or `local:<account>`). owner: whose memories
    and sessions (differs from person only with --user). channel: a Slack channel id, `dm` or `terminal`
    for the access rules.
    """

    id: int
    team: str
    session_id: int
    state: TurnState
    front: Front
    person: str
    person_name: str
    owner: str
    channel: str
    text: str
    source_ts: str | None  # Slack ts of the message that started it
    created_at: datetime
    started_at: datetime | None = None
    finished_at: datetime | None = None
    stop_by: str | None = None  # set when somebody pressed Stop
    steps: int = 0
    resumed: int = 0  # how often another process took it up


@dataclass(frozen=True, slots=True)
class Claim:
    """A session this process may work on until the lease ends. Every write of the turn carries `epoch`."""

    session: Session
    turn: Turn
    epoch: int
    resumed: bool  # an earlier process began this turn


@dataclass(frozen=True, slots=True)
class Milestone:
    id: int
    session_id: int
    turn_id: int | None
    kind: MilestoneKind
    text: str
    source: MilestoneSource
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Verdict:
    """The gate's word on one command.

    run: the exact text that would be executed (rendered from our own words, or, when it could not be
    parsed but can be shown, the text itself byte for byte); None when it cannot be run at all.
    danger: why two different people must approve it; "" for most. Only an ASK has one.
    """

    decision: Decision
    reason: str
    run: str | None
    parsed: bool
    danger: str = ""


@dataclass(frozen=True, slots=True)
class Command:
    """One shell line on one host, for one call."""

    id: int
    session_id: int
    turn_id: int
    call_id: str
    host: str
    run: str
    state: CommandState
    decision: Decision
    reason: str
    approval_id: int | None
    exit_status: int | None = None
    signal: str | None = None
    note: str = ""  # why the outcome is unknown, or the error that kept it from running
    seconds: float | None = None
    stdout_bytes: int = 0
    stderr_bytes: int = 0
    truncated: bool = False
    created_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Ended:
    """What became of a command. exit_status None: a signal, or unknown (`note` says why). Sizes as printed."""

    state: CommandState
    exit_status: int | None = None
    signal: str | None = None
    note: str = ""
    seconds: float = 0.0
    stdout: str = ""
    stderr: str = ""
    stdout_bytes: int = 0
    stderr_bytes: int = 0
    truncated: bool = False


@dataclass(frozen=True, slots=True)
class Output:
    """What a command printed, capped at the channel; the whole of what was kept."""

    command_id: int
    stdout: str
    stderr: str


@dataclass(frozen=True, slots=True)
class ApprovalHost:
    """One host an approval binds: all that decides where the command would run.

    route: the bastions on the way, nearest to us first, each as `name user@address:port SHA256:…`.
    """

    name: str
    address: str
    port: int
    user: str
    fingerprint: str
    route: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Approval:
    """A person's yes or no to an exact text on exact hosts; `digest` binds all of what was shown.

    needs: how many different people must say yes. danger: why it needs two, "" for most. policy: the digest
    of the rules that judged it. decided_by: the names of those who answered.
    """

    id: int
    team: str
    session_id: int
    turn_id: int
    call_id: str
    token: str
    hosts: tuple[ApprovalHost, ...]
    run: str
    limit_s: int
    reason: str
    purpose: str
    requester: str
    policy: str
    danger: str
    needs: int
    digest: str
    state: ApprovalState
    expires_at: datetime
    created_at: datetime
    decided_by: str | None = None
    decided_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class NewPost:
    """Something that must be delivered to a front end, once. `key` is unique: the same key again is a no-op.

    payload is the front end's own (for Slack: method, text, blocks); storage does not look into it.
    """

    key: str
    channel: str
    thread_ts: str | None
    payload: dict[str, Any] = field(hash=False)


@dataclass(frozen=True, slots=True)
class Post:
    """A stored NewPost on its way. external_ts: the id Slack gave it."""

    id: int
    team: str
    session_id: int | None
    key: str
    channel: str
    thread_ts: str | None
    payload: dict[str, Any] = field(hash=False)
    state: PostState = PostState.NEW
    attempts: int = 0
    external_ts: str | None = None


@dataclass(frozen=True, slots=True)
class ThreadLine:
    """A message people wrote in a session's thread that did not start a turn: context for the next."""

    author: str
    author_name: str
    text: str
    ts: str


@dataclass(frozen=True, slots=True)
class SearchHit:
    """One message found. session_key is the import's key, else None."""

    session_id: int
    session_key: str | None
    message_id: int
    seq: int
    score: float


@dataclass(frozen=True, slots=True)
class NewMemory:
    """A memory to keep. With subject and attribute it has a key, under which one value holds at a time.

    message_id, command_id: what it was learnt from; source: what an imported file says of that. at: since when
    it is so, None now. valid_to: until when it was so; only an import brings memories that no longer hold.
    """

    kind: MemoryKind
    text: str
    subject: str | None = None
    attribute: str | None = None
    value: str | None = None
    host: str | None = None
    message_id: int | None = None
    command_id: int | None = None
    source: Any = field(default=None, hash=False)
    ref: str | None = None
    at: datetime | None = None
    valid_to: datetime | None = None


@dataclass(frozen=True, slots=True)
class Memory:
    """A fact kept beyond a session. It holds while valid_to is None; confirmed_at: last seen to be so."""

    id: int
    team: str
    owner: str
    shared: bool
    kind: MemoryKind
    text: str
    subject: str | None
    attribute: str | None
    value: str | None
    host: str | None
    message_id: int | None
    command_id: int | None
    source: Any = field(hash=False)
    ref: str | None
    created_at: datetime
    valid_from: datetime
    valid_to: datetime | None
    superseded_by: int | None
    confirmed_at: datetime
    last_used_at: datetime | None
    use_count: int
    words: int
    scope_id: int | None


@dataclass(frozen=True, slots=True)
class Recalled:
    """A memory found. A score compares memories of one query only; 0 when nothing was asked."""

    memory: Memory
    score: float
