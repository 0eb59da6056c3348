"""What a turn is given of its person's long-term memories: their wishes, and what fits the question."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from bot import log
from bot.agent.memory_text import core_text, fitting, memory_text, shown
from bot.journal.notes import Note
from bot.turns.learning import Learner
from storage import core_memory, turns
from storage.errors import StorageError
from storage.memories import ending, finding
from storage.recall.meaning import Meaning
from storage.recall.tokens import tokens
from storage.records import Memory, Message, Role, Turn
from storage.store import Store

FEW = 4  # words; a shorter message ("continue") means what its person asked before

logger = log.get(__name__)


@dataclass(frozen=True, slots=True)
class Remembered:
    """text: the block for this turn's requests; core: what is pinned. private: what in both is this person's alone.

    used: how many memories the whole turn was given.
    """

    text: str = ""
    core: str = ""
    private: tuple[Note, ...] = ()
    used: int = 0


@dataclass(frozen=True, slots=True)
class Remembering:
    """Reads memories for turns, and notes by their ids which ones a turn was given."""

    store: Store
    learner: Learner
    zone: str
    meaning: Meaning | None = None

    async def for_turn(
        self, turn: Turn, history: Sequence[Message], *, hosts: Collection[str], who: str
    ) -> Remembered:
        """Never raises: a turn goes on without memories."""
        await self.learner.catch_up(turn)
        query = _query(turn, history)
        try:
            async with self.store.begin() as db:
                wishes = fitting(await finding.preferences(db, team=turn.team, owner=turn.owner))
                notes = await finding.for_prompt(
                    db, query, team=turn.team, owner=turn.owner, hosts=hosts, meaning=self.meaning
                )
                pinned = await core_memory.blocks(db, team=turn.team, owner=turn.owner)
                memories = (*wishes, *(each.memory for each in notes))
                used = await turns.give_memories(db, turn.id, [memory.id for memory in memories])
                await ending.used(db, used.fresh, team=turn.team, owner=turn.owner)
        except StorageError as error:
            logger.warning("a turn goes on without memories", turn=turn.id, error=str(error))
            return Remembered()
        text = memory_text(wishes, [each.memory for each in notes], who=who, zone=self.zone)
        private = [_note(memory) for memory in memories if not memory.shared]
        private += [Note(each) for each in pinned.person.splitlines()]
        core = core_text(pinned.person, pinned.team, who=who)
        return Remembered(text, core, tuple(private), used.all)


def _note(memory: Memory) -> Note:
    return Note(shown(memory), memory.host or "", memory.value or "")


def _query(turn: Turn, history: Sequence[Message]) -> str:
    """The message; behind a short one what the same person asked before it."""
    if len(tokens(turn.text)) >= FEW:
        return turn.text
    before = next(
        (
            m.text
            for m in reversed(history)
            if m.role is Role.USER and m.turn_id != turn.id and len(tokens(m.text)) >= FEW
        ),
        "",
    )
    return f"{turn.text}\n{before}"
