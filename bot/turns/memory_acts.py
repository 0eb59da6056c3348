"""What a person does to their memories: each act with its row in the audit log, which holds no text of them.

Slack, the terminal and the command line all come here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from bot.memory.gate import may_stay
from bot.redact import Redactor
from storage import audit, core_memory
from storage.audit import AuditEvent
from storage.errors import MemoryRefused
from storage.memories import ending, keeping, likeness, rows
from storage.memories.keeping import Outcome
from storage.records import Memory, MemoryKind, NewMemory
from storage.store import Db


@dataclass(frozen=True, slots=True)
class Who:
    """owner: whose memories. person: who acts, with the OS account they act through, if any."""

    team: str
    owner: str
    person: str
    os_account: str = ""


async def add(db: Db, who: Who, new: NewMemory) -> tuple[Memory, Outcome]:
    """Keep a memory. Raises MemoryRefused. What it says is redacted already."""
    kept = await keeping.add(db, new, team=who.team, owner=who.owner)
    assert kept is not None, "only what is learnt is passed over"
    await note(db, who, AuditEvent.MEMORY_ADDED, ids=[kept.id], kind=new.kind)
    return await rows.get(db, kept.id, team=who.team, owner=who.owner), kept.outcome


async def remember(db: Db, who: Who, words: str, redactor: Redactor) -> Memory:
    """Keep a person's own words as their wish. Raises MemoryRefused for what must not be kept."""
    if redactor.text(words).found:
        raise MemoryRefused("that looks like a secret, and secrets are not remembered; nothing was kept")
    if not may_stay(words):
        raise MemoryRefused(
            "that is too long, or speaks to the model against its rules; say it in one plain sentence"
        )
    memory, _ = await add(db, who, NewMemory(MemoryKind.USER_PREFERENCE, words))
    return memory


async def forget(db: Db, who: Who, ids: Sequence[int]) -> list[Memory]:
    """Erase memories, with the earlier values of their keys and with lines of the pinned block that say the same.

    Answers what they were. Raises NotFound; then nothing was erased.
    """
    gone = [await rows.get(db, id_, team=who.team, owner=who.owner) for id_ in ids]
    erased: set[int] = set()
    for memory in gone:
        if memory.id not in erased:
            erased.update(await ending.forget(db, memory.id, team=who.team, owner=who.owner))
        await _unpin_same(db, who, memory.text)
    await note(db, who, AuditEvent.MEMORY_FORGOTTEN, ids=sorted(erased))
    return gone


async def share(db: Db, who: Who, memory_id: int, *, wording: str) -> None:
    """Show a memory to the team. Raises NotFound, Conflict, MemoryRefused."""
    await ending.share(db, memory_id, team=who.team, owner=who.owner, wording=wording)
    await note(db, who, AuditEvent.MEMORY_SHARED, ids=[memory_id])


async def unshare(db: Db, who: Who, memory_id: int) -> None:
    """Make it the person's own again. Raises NotFound."""
    await ending.unshare(db, memory_id, team=who.team, owner=who.owner)
    await note(db, who, AuditEvent.MEMORY_UNSHARED, ids=[memory_id])


async def switch(db: Db, who: Who, *, on: bool) -> None:
    """Keep and recall memories for this person, or not; what is kept stays until it is forgotten."""
    await rows.opt_out(db, team=who.team, person=who.owner, out=not on)
    await note(db, who, AuditEvent.MEMORY_SWITCHED, on=on)


async def pin(db: Db, who: Who, words: str, redactor: Redactor) -> None:
    """Add a line to the person's block. Raises MemoryRefused."""
    block = (await core_memory.blocks(db, team=who.team, owner=who.owner)).person
    await put_core(db, who, f"{block}\n{words}".strip(), redactor)


async def put_core(db: Db, who: Who, block: str, redactor: Redactor, *, for_team: bool = False) -> None:
    """Replace the person's block, or the team's; an empty one is removed. Raises MemoryRefused."""
    if redactor.text(block).found:
        raise MemoryRefused("that looks like a secret, and secrets are not pinned; nothing was changed")
    if not all(may_stay(line) for line in block.splitlines() if line.strip()):
        raise MemoryRefused(
            "a pinned line is too long, or speaks to the model against its rules; nothing was changed"
        )
    owner = None if for_team else who.owner
    await core_memory.put(db, block, team=who.team, owner=owner, by=who.person)
    await note(db, who, AuditEvent.CORE_CHANGED, of="team" if for_team else "person", characters=len(block))


async def _unpin_same(db: Db, who: Who, text: str) -> None:
    block = (await core_memory.blocks(db, team=who.team, owner=who.owner)).person
    kept = "\n".join(line for line in block.splitlines() if _plain(line) != _plain(text))
    if kept != block:
        await core_memory.put(db, kept, team=who.team, owner=who.owner, by=who.person)


def _plain(sentence: str) -> str:
    return likeness.plain(sentence).rstrip(".。!！ ")


async def note(db: Db, who: Who, event: AuditEvent, **detail: object) -> None:
    """One row of the audit log, in the transaction of the act. detail: never a memory's text."""
    about = {} if who.owner == who.person else {"owner": who.owner}
    await audit.add(
        db,
        event,
        team=who.team,
        person=who.person,
        os_account=who.os_account,
        detail={**about, **detail},
    )


def clean(new: NewMemory, redactor: Redactor) -> NewMemory:
    """A memory from outside without secrets, like all that is kept."""

    def cleaned(value: str | None) -> str | None:
        return None if value is None else redactor.text(value).text

    source = cleaned(new.source) if isinstance(new.source, str) else new.source
    return replace(
        new,
        text=cleaned(new.text) or "",
        subject=cleaned(new.subject),
        attribute=cleaned(new.attribute),
        value=cleaned(new.value),
        host=cleaned(new.host),
        ref=cleaned(new.ref),
        source=source,
    )
