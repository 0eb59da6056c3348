"""What the audit log tells of: the closed set of its events."""

from __future__ import annotations

from enum import StrEnum

ITSELF = "opsthread"  # in `person`, where a process did something that no person asked for


class AuditEvent(StrEnum):
    """`thing.happened`. The comment says when the row is written and what `detail` must let one answer."""

    COMMAND_STARTED = "command.started"  # claimed, before anything is sent: what, why, by whose yes
    COMMAND_DONE = "command.done"  # it ended: status or signal, how long, how much it printed
    COMMAND_UNKNOWN = "command.unknown"  # nobody can say whether it ran to its end
    COMMAND_REFUSED = "command.refused"  # the gate or the access rules said no; nothing was sent

    APPROVAL_OPENED = "approval.opened"  # a card was shown: text, hosts, why
    APPROVAL_APPROVED = "approval.approved"  # somebody who may said yes
    APPROVAL_DENIED = "approval.denied"  # somebody said no
    APPROVAL_EXPIRED = "approval.expired"  # nobody answered in time
    APPROVAL_REVOKED = "approval.revoked"  # taken back: the turn was stopped, failed or went on without it
    APPROVAL_REFUSED_ANSWER = "approval.refused_answer"  # an answer of somebody who may not give it
    APPROVAL_LATE_ANSWER = "approval.late_answer"  # an answer after the end; nothing was done

    TURN_STOPPED = "turn.stopped"  # somebody asked for a turn to be stopped

    SESSION_VIEWED = "session.viewed"  # `sessions show`, and each message that `sessions search` shows of it
    SESSION_EXPORTED = "session.exported"  # `sessions export`, as lines or as a post-mortem
    SESSION_IMPORTED = "session.imported"  # `sessions import`: which sessions got how many messages, for whom
    SESSION_CHANGED = "session.changed"  # by `sessions rewind`, `switch` or `archive`
    OUTPUT_VIEWED = "output.viewed"  # the kept output of a command was read
    AUDIT_EXPORTED = "audit.exported"  # `audit export`
    AUDIT_ERASED = "audit.erased"  # payloads of rows were erased: which rows, not whose

    MEMORY_ADDED = (
        "memory.added"  # by a person, not by learning; as all of memory: numbers and kinds, no text
    )
    MEMORY_FORGOTTEN = "memory.forgotten"  # erased, with the earlier values of its key
    MEMORY_SHARED = "memory.shared"  # shown to the team
    MEMORY_UNSHARED = "memory.unshared"  # its person's own again
    MEMORY_SWITCHED = "memory.switched"  # a person wants memories kept and recalled, or not
    MEMORY_IMPORTED = "memory.imported"  # `memory import`: how many for whom
    MEMORY_EXPORTED = "memory.exported"  # `memory export`
    CORE_CHANGED = "memory.core_changed"  # what is pinned for a person or the team

    HOSTS_TRUSTED = "hosts.trusted"  # a host's key is about to be written to known_hosts
    HOSTS_NOT_TRUSTED = "hosts.not_trusted"  # it was not: the host offers another key, or does not answer
    INVENTORY_RELOADED = "inventory.reloaded"  # a new reading of hosts.yml is in force
    INVENTORY_REFUSED = "inventory.refused"  # a changed hosts.yml has faults; the old reading stays
    MODE_SET = "mode.set"  # the bot was stopped, made to read only, or set to work again
    POLICY_RELOADED = "policy.reloaded"  # other rules of the gate are in force
    SETTINGS_RELOADED = "settings.reloaded"  # other settings are in force
