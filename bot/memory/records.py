"""What extraction takes and gives: messages as heard, memories as found, and what a person took back."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from storage.records import MemoryKind, Role


@dataclass(frozen=True, slots=True)
class Heard:
    """One message of a conversation, already redacted.

    host, command (the text that ran, as rendered by the gate) and exit_status belong to a tool result;
    text is then what the command printed, stdout and stderr.
    """

    role: Role
    text: str
    author: str = ""
    host: str = ""
    command: str = ""
    exit_status: int | None = None
    at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Found:
    """A memory. text: one sentence that stands for itself. source: which message, counted from 1.

    Of the same (kind, subject, attribute) only the newest value stands. subject: the host of a fact, the
    hosts of a case, the person of a preference.
    """

    kind: MemoryKind
    subject: str
    attribute: str
    value: str
    text: str
    host: str
    source: int

    @property
    def key(self) -> tuple[MemoryKind, str, str]:
        """What a newer memory must share to take this one's place."""
        return self.kind, self.subject, self.attribute


@dataclass(frozen=True, slots=True)
class TakenBack:
    """A person's word that a preference of theirs no longer holds.

    words: what it was about, folded (see `bot.memory.words.content`); empty means the last one. latest: only
    one that the message `since` or a later one brought, the person's one right before. source: as in Found.
    """

    subject: str
    words: frozenset[str]
    latest: bool
    source: int
    since: int = 0
