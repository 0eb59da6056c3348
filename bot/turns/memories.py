"""Answers words about memory, for one person: remember, forget, what do you know, share, pin, off and on.

What is told here is for that person alone: whoever shows it sees to that, and keeps it nowhere.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import assert_never
from zoneinfo import ZoneInfo

from bot.agent import intent
from bot.agent.intent import Intent, Wanted
from bot.redact import Redactor
from bot.turns import memory_acts as acts
from bot.turns.memory_acts import Who
from storage import commands, core_memory, intents, turns
from storage.errors import Conflict, MemoryRefused, NotFound
from storage.memories import finding, rows
from storage.recall.tokens import tokens
from storage.records import Memory, MemoryKind
from storage.store import Db, Store

PAGE = 20
CANDIDATES = 5
MOST_DIGITS = 18  # of a number in a button

KINDS = {
    MemoryKind.USER_PREFERENCE: "wish",
    MemoryKind.ENVIRONMENT_FACT: "host",
    MemoryKind.SOFTWARE_FACT: "version",
    MemoryKind.TROUBLESHOOTING_CASE: "case",
}


@dataclass(frozen=True, slots=True)
class Line:
    """A memory in an answer. why: how it is known. text: what it says. forget, share: offer a button for it."""

    id: int
    text: str
    why: str
    forget: bool = False
    share: str = ""  # the token that binds the exact text; "" offers nothing


@dataclass(frozen=True, slots=True)
class Told:
    """An answer: a title, memories, and a hint what to say next."""

    title: str
    lines: tuple[Line, ...] = ()
    hint: str = ""


@dataclass(slots=True)
class Memories:
    """One a process."""

    store: Store
    redactor: Redactor
    zone: str
    _last: dict[tuple[str, str], str] = field(default_factory=dict)  # what was last taken for a word to us

    async def read(self, text: str, *, team: str, person: str) -> Wanted:
        """What a message wants, as this person has corrected it. Only its word is looked at, nothing is done."""
        wanted = intent.read(text)
        if wanted.intent in (Intent.WORK, Intent.CONTINUE):
            return intent.WORK
        async with self.store.begin() as db:
            if await intents.corrected(db, team=team, person=person, words=intent.folded(text)):
                return intent.WORK
        if wanted.intent is Intent.MEANT_WORK:
            return wanted if (team, person) in self._last else intent.WORK
        self._last[team, person] = text
        return wanted

    async def corrected(self, *, team: str, person: str) -> str:
        """The message before was meant as work: keep that, and give it back to be worked on."""
        text = self._last.pop((team, person))
        async with self.store.begin() as db:
            await intents.correct(db, team=team, person=person, words=intent.folded(text), intent=Intent.WORK)
        return text

    async def answer(self, wanted: Wanted, who: Who) -> Told:
        """Do what is wanted; a refusal is an answer too. Raises StorageError when the database is away."""
        try:
            async with self.store.begin() as db:
                return await self._answer(db, wanted, who)
        except (MemoryRefused, NotFound, Conflict) as error:
            return Told(str(error))

    async def _answer(self, db: Db, wanted: Wanted, who: Who) -> Told:
        match wanted.intent:
            case Intent.REMEMBER:
                memory = await acts.remember(db, who, wanted.words, self.redactor)
                return Told("Remembered", (self._line(memory, forget=True),), f"forget {memory.id} erases it")
            case Intent.FORGET:
                return await self._forget(db, wanted, who)
            case Intent.MEMORIES | Intent.KNOWN:
                return await self._list(db, wanted.page, who)
            case Intent.SHARE:
                return await self._share(db, wanted, who)
            case Intent.UNSHARE:
                for id_ in wanted.ids:
                    await acts.unshare(db, who, id_)
                return Told(f"Yours alone again: {_numbers(wanted.ids)}")
            case Intent.PIN:
                await acts.pin(db, who, wanted.words, self.redactor)
                return await self._pinned(db, who, "Pinned; it stands in each of your requests now")
            case Intent.PINNED:
                return await self._pinned(db, who, "Pinned")
            case Intent.UNPIN:
                await acts.put_core(db, who, "", self.redactor)
                return Told("Nothing is pinned for you any more")
            case Intent.OFF | Intent.ON:
                await acts.switch(db, who, on=wanted.intent is Intent.ON)
                return _switched(on=wanted.intent is Intent.ON)
            case Intent.WORK | Intent.CONTINUE | Intent.MEANT_WORK:
                raise AssertionError("this is no word about memory")
            case _:
                assert_never(wanted.intent)

    async def _forget(self, db: Db, wanted: Wanted, who: Who) -> Told:
        ids = wanted.ids
        if not ids:
            fitting = await self._meant(db, wanted.words, who)
            if len(fitting) != 1:
                if not fitting:
                    return Told("I keep nothing that fits these words; `memories` lists what I keep")
                lines = tuple(self._line(memory, forget=True) for memory in fitting)
                return Told("Which of these?", lines, f"forget {fitting[0].id} erases one")
            ids = (fitting[0].id,)
        gone = await acts.forget(db, who, ids)
        return Told("Forgotten, and not learnt again from the same words", tuple(map(self._line, gone)))

    async def _meant(self, db: Db, words: str, who: Who) -> list[Memory]:
        """The one memory that has all of these words, else those that have some."""
        asked = set(tokens(words))
        found = await finding.recall(db, words, team=who.team, owner=who.owner, limit=CANDIDATES)
        own = [one.memory for one in found if one.memory.owner == who.owner]
        whole = [m for m in own if asked and asked <= set(tokens(f"{m.text} {m.value or ''}"))]
        return whole or own

    async def _list(self, db: Db, page: int, who: Who) -> Told:
        count = await rows.count(db, team=who.team, owner=who.owner)
        core = (await core_memory.blocks(db, team=who.team, owner=who.owner)).person
        kept = f"{count:,} memor{'y' if count == 1 else 'ies'}"
        if await rows.opted_out(db, team=who.team, person=who.owner):
            title = f"Memory is off for you; {kept} stay until you forget them"
        else:
            title = f"I keep {kept} of you" if count else "I keep nothing of you yet"
        pages = max(1, -(-count // PAGE))
        page = min(page, pages)
        shown = await rows.page(db, team=who.team, owner=who.owner, limit=PAGE, offset=(page - 1) * PAGE)
        hint = f"page {page} of {pages}, memories {page + 1} goes on · " if page < pages else ""
        hint += (
            "forget NUMBER erases one · share NUMBER shows it to your team · memory off keeps nothing more"
        )
        lines = tuple(self._line(memory) for memory in shown)
        if core and page == 1:
            lines = (Line(0, core, "pinned by you"), *lines)
        return Told(title, lines, hint if count or core else "")

    async def _share(self, db: Db, wanted: Wanted, who: Who) -> Told:
        found = [await rows.get(db, id_, team=who.team, owner=who.owner) for id_ in wanted.ids]
        if not wanted.sure:
            return Told(
                "This exact text would be shown to your team; about a host, to those who may use it",
                tuple(self._line(memory, share=_token(memory)) for memory in found),
                f"share {_numbers(wanted.ids)} yes does it",
            )
        for memory in found:
            await acts.share(db, who, memory.id, wording=memory.text)
        return Told(
            "Shared with your team",
            tuple(map(self._line, found)),
            f"unshare {_numbers(wanted.ids)} takes it back",
        )

    async def _pinned(self, db: Db, who: Who, title: str) -> Told:
        core = await core_memory.blocks(db, team=who.team, owner=who.owner)
        lines = [Line(0, core.person, "by you")] if core.person else []
        lines += [Line(0, core.team, "by your team")] if core.team else []
        return Told(
            title if lines else "Nothing is pinned",
            tuple(lines),
            "unpin removes yours" if core.person else "",
        )

    async def forget_click(self, memory_id: int, who: Who) -> str:
        """The button under a memory; one line for the person."""
        told = await self.answer(Wanted(Intent.FORGET, ids=(memory_id,)), who)
        return told.title if not told.lines else f"Forgotten: {told.lines[0].text}"

    async def share_click(self, token: str, who: Who) -> str:
        """The button under an exact text; one line for the person."""
        number = token.partition("-")[0]
        if not number.isdecimal() or len(number) > MOST_DIGITS:
            return "this button is not known here; nothing was shared"
        async with self.store.begin() as db:
            try:
                memory = await rows.get(db, int(number), team=who.team, owner=who.owner)
                if _token(memory) != token:
                    return f"memory {number} says something else by now; look at it again"
                await acts.share(db, who, memory.id, wording=memory.text)
            except (MemoryRefused, NotFound, Conflict) as error:
                return str(error)
        return f"Shared with your team: {memory.text}"

    async def used_in(self, turn_id: int, who: Who) -> Told:
        """Which memories a turn was given, and why they are known; for the turn's own person alone."""
        async with self.store.begin() as db:
            try:
                turn = await turns.get(db, turn_id)
            except NotFound:
                turn = None
            if turn is None or (turn.team, turn.owner) != (who.team, who.owner):
                return Told("These are the memories of whoever asked, and only they can look at them")
            ids = await turns.memories_of(db, turn_id)
            found = await rows.visible(db, ids, team=who.team, owner=who.owner)
            lines = [self._line(m, why=await self._why(db, m), forget=m.owner == who.owner) for m in found]
        gone = len(ids) - len(found)
        hint = f"{gone} of them {'is' if gone == 1 else 'are'} forgotten since" if gone else ""
        return Told("Before me were, when I answered:", tuple(lines), hint)

    async def _why(self, db: Db, memory: Memory) -> str:
        if memory.command_id is not None:
            command = await commands.get(db, memory.command_id)
            return (
                f"`{command.run}` on {command.host} printed it, seen last on {self._day(memory.confirmed_at)}"
            )
        if memory.kind is MemoryKind.TROUBLESHOOTING_CASE:
            return f"concluded on {self._day(memory.confirmed_at)}"
        return f"you said so on {self._day(memory.confirmed_at)}"

    def _line(self, memory: Memory, *, why: str = "", forget: bool = False, share: str = "") -> Line:
        marks = [KINDS[memory.kind], self._day(memory.confirmed_at), *(["shared"] if memory.shared else [])]
        return Line(memory.id, memory.text, why or " · ".join(marks), forget=forget, share=share)

    def _day(self, at: datetime) -> str:
        return f"{at.astimezone(ZoneInfo(self.zone)):%Y-%m-%d}"


def _switched(*, on: bool) -> Told:
    if on:
        return Told("Memory is on for you: I learn from what you say and find, and use what I keep")
    return Told(
        "Memory is off for you: nothing more is kept or used",
        hint="what I keep stays until you forget it; memory on turns it on",
    )


def _token(memory: Memory) -> str:
    """Binds a number to its text: what is shared is what was shown."""
    return f"{memory.id}-{hashlib.sha256(memory.text.encode()).hexdigest()[:16]}"


def _numbers(ids: Sequence[int]) -> str:
    return ", ".join(map(str, ids))
