"""What came in -> what happens: who may, whether we are spoken to, and over to the desk.

Messages of one thread are taken one after the other, in the order they came. Whatever is refused gets one
clear line in the thread; the line's key makes it one, however often the message is delivered.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol
from weakref import WeakValueDictionary

from slack_sdk.web.async_client import AsyncWebClient

from bot import log
from bot.access import Actor, hosts_for
from bot.agent.intent import Intent, Wanted
from bot.errors import OpsthreadError, Refused
from bot.redact import Redactor
from bot.slack import blocks, commands
from bot.slack.commands import Commands
from bot.slack.etiquette import Etiquette, decide, hinges_on_the_last_word
from bot.slack.incoming import Clicked, Commanded, Deleted, Said, Us
from bot.slack.memory_cards import FORGET, SHARE, told_message
from bot.slack.people import CALL_FAILED, People, Person, SlackSilent
from bot.slack.text import mentions
from bot.ssh.inventory import Inventory
from bot.turns.arrival import Arrival, Receipt
from bot.turns.memories import MOST_DIGITS, Memories
from bot.turns.memory_acts import Who
from storage import inbox, outbox, sessions, turns
from storage.errors import NotFound, StorageError
from storage.inbox import ThreadState
from storage.records import Approval, Front, NewPost, Origin, TurnState
from storage.store import Store

SETTLE_S = 3.0  # how long a post of ours that is on its way is waited for before people are judged
ASK_AGAIN_S = 0.5  # until Slack is asked again who somebody is; doubles every time
_TRIES = 5


class Desk(Protocol):
    """What the desk does for a front end (bot/turns/desk.py)."""

    async def receive(self, arrival: Arrival) -> Receipt: ...

    async def stop(self, turn_id: int, *, by: str, by_name: str) -> TurnState: ...


class Approvals(Protocol):
    """Where people's answers are taken (bot/turns/approval.py)."""

    async def by_token(self, token: str) -> Approval | None: ...

    async def decide(
        self, approval: Approval, *, actor: Actor, approve: bool, os_account: str = ""
    ) -> tuple[bool, str]: ...


@dataclass(frozen=True, slots=True)
class Parts:
    """What the reception works with."""

    store: Store
    client: AsyncWebClient
    us: Us
    people: People
    commands: Commands
    desk: Desk
    approvals: Approvals
    memories: Memories
    inventory: Callable[[], Inventory]
    redactor: Redactor  # what people write is read without the secrets in it


@dataclass(frozen=True, slots=True)
class _Word:
    """A message with what is known of it."""

    said: Said
    plain: str
    thread: ThreadState


class Reception:
    """One a process."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._threads: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._reactions: set[asyncio.Task[None]] = set()
        self._log = log.get("slack.reception")

    async def close(self) -> None:
        for task in self._reactions:
            task.cancel()
        await asyncio.gather(*self._reactions, return_exceptions=True)

    # ---- messages ----

    async def said(self, said: Said) -> None:
        """Take one message in. Held and tried again for as long as the database is away.

        When the process ends before that, the catch-up of the next one reads it: nothing has marked it as seen.
        """
        if said.thread_ts is None and not (said.mentions_us or said.is_dm):
            return  # people in a channel
        lock = self._threads.setdefault(said.session_key, asyncio.Lock())
        async with lock:
            pause, told = 0.5, False
            while True:
                try:
                    await self._take(said)
                    return
                except StorageError as error:
                    self._log.warning("message held", channel=said.channel, ts=said.ts, fault=str(error))
                    if not told and (said.mentions_us or said.is_dm):
                        told = await self._tell_outage(said)
                await asyncio.sleep(pause)
                pause = min(pause * 2, 15.0)

    async def deleted(self, deleted: Deleted) -> None:
        """The request that a deleted message made is taken back: its turn is stopped, its cards are closed."""
        try:
            async with self._parts.store.begin() as db:
                turn_id = await inbox.turn_of(db, message_key=deleted.message_key)
            if turn_id is not None:
                await self._parts.desk.stop(turn_id, by="", by_name="deleting its message")
        except StorageError as error:
            self._log.warning("a deleted message is not taken back", fault=str(error))

    async def _take(self, said: Said) -> None:
        word = await self._look(said)
        if word is None:
            return
        what = decide(said, word.thread, plain=word.plain)
        if what is Etiquette.NOTHING:
            return
        person = await self._person(said)
        if person is None or person.bot:
            return
        if what is Etiquette.CONTEXT:
            if not person.refused:
                await self._parts.desk.receive(self._arrival(word, person, starts_turn=False))
            await self._seen(said, person)
            return
        await self._spoken_to(word, person)
        await self._seen(said, person)

    async def _look(self, said: Said) -> _Word | None:
        """The message with its thread; None when it was received before."""
        deadline = asyncio.get_running_loop().time() + SETTLE_S
        names = await self._parts.people.names(i for i in mentions(said.raw) if i != self._parts.us.bot_user)
        plain = self._parts.redactor.text(said.plain(self._parts.us, names)).text
        while True:
            async with self._parts.store.begin() as db:
                if await inbox.known(db, message_key=said.message_key):
                    return None
                thread = await inbox.thread_state(
                    db, said.team, said.channel, thread_ts=said.root, before_ts=said.ts
                )
            late = asyncio.get_running_loop().time() > deadline
            if late or not hinges_on_the_last_word(said, thread, plain=plain):
                return _Word(said, plain, thread)
            await asyncio.sleep(0.05)

    async def _person(self, said: Said) -> Person | None:
        for n in range(_TRIES):
            try:
                return await self._parts.people.person(said.author)
            except SlackSilent:
                self._log.warning("author unknown: Slack does not answer", author=said.author)
                await asyncio.sleep(ASK_AGAIN_S * 2**n)
        await self._say(said, "silent", "I could not ask Slack who you are. Please say it again in a minute.")
        return None

    async def _spoken_to(self, word: _Word, person: Person) -> None:
        """A message meant for us: a command, a turn, or one line that says why not."""
        said, parts = word.said, self._parts
        if person.refused:
            who = "Guests" if person.guest else "People of other companies"
            await self._refuse(said, f"{who} cannot work with me here. Please ask a member of the team.")
            return
        request = commands.parse(word.plain) if said.mentions_us or said.is_dm else None
        if request is not None:
            await self._command(said, request)
            return
        wanted = await parts.memories.read(word.plain, team=said.team, person=said.author)
        if wanted.intent is Intent.MEANT_WORK:
            word = replace(word, plain=await parts.memories.corrected(team=said.team, person=said.author))
        elif wanted.intent is not Intent.WORK:
            await self._about_memory(said, wanted)
            return
        if not word.plain:
            await self._say(said, "empty", self._parts.redactor.text(_nothing_said(said)).text)
            return
        refusal = await self._no_access(said)
        if refusal:
            await self._refuse(said, refusal)
            return
        try:
            receipt = await parts.desk.receive(self._arrival(word, person, starts_turn=True))
        except Refused as error:
            await self._say(said, "refused", _sentence(str(error)))
            return
        if receipt.duplicate:
            return
        if said.files:
            await self._say(said, "files", "I cannot read attachments yet; I go by your words alone.")
        if word.thread.session_id is None and receipt.session_id is not None:
            self._eyes(said)

    async def _no_access(self, said: Said) -> str | None:
        """Why this person has no host from here; None: there is at least one."""
        parts = self._parts
        try:
            actor = await parts.people.actor(said.author)
            shared = said.shared or (not said.is_dm and await parts.people.shared(said.channel))
        except SlackSilent as error:
            return str(error)
        channel = "dm" if said.is_dm else said.channel
        if hosts_for(actor, channel, parts.inventory(), shared=shared):
            return None
        if shared:
            return (
                "This channel is shared with another company, and no access rule in hosts.yml names it,"
                " so I do not work here."
            )
        return (
            f"You have no access to any host from here, {actor.name}. An access rule in hosts.yml must name you"
            " (or a user group of yours) and this channel; please ask whoever runs me."
        )

    def _arrival(self, word: _Word, person: Person, *, starts_turn: bool) -> Arrival:
        said = word.said
        return Arrival(
            team=said.team,
            origin=Origin.SLACK,
            front=Front.SLACK,
            session_key=said.session_key,
            channel=said.channel,
            access_channel="dm" if said.is_dm else said.channel,
            thread_ts=said.root,
            ts=said.ts,
            message_key=said.message_key,
            event_key=said.event_key,
            person=said.author,
            person_name=person.name or said.author,
            owner=said.author,
            text=word.plain,
            starts_turn=starts_turn,
            opens_session=said.mentions_us or said.is_dm,
        )

    async def _seen(self, said: Said, person: Person) -> None:
        """Only now: until here a crash must have the message read again."""
        async with self._parts.store.begin() as db:
            for thread in {said.root, ""} if said.thread_ts is None else {said.root}:
                await inbox.note_seen(
                    db, said.team, said.channel, thread_ts=thread, ts=said.ts, by=person.id, person=person.id
                )

    # ---- lines of ours ----

    async def _refuse(self, said: Said, line: str) -> None:
        """Told at every mention, but only once a thread to somebody who merely writes in it."""
        key = said.message_key if said.mentions_us or said.is_dm else f"{said.session_key}:{said.author}"
        await self._settle(said, f"refused:{key}", blocks.note(line)[0].payload())

    async def _say(self, said: Said, kind: str, line: str) -> None:
        await self._settle(said, f"{kind}:{said.message_key}", blocks.note(line)[0].payload())

    async def _command(self, said: Said, request: commands.Request) -> None:
        """Seen by the asker alone, except in a direct message, where it stays."""
        answer = await self._parts.commands.answer(request, person=said.author, channel=said.channel)
        payload = answer.payload() if said.is_dm else answer.payload("chat.postEphemeral", user=said.author)
        await self._settle(said, f"command:{said.message_key}", payload)

    async def _about_memory(self, said: Said, wanted: Wanted) -> None:
        """Answered for the person's eyes, and kept nowhere: neither their words nor what they are told."""
        told = await self._parts.memories.answer(wanted, Who(said.team, said.author, said.author))
        await self._settle(said, "", None)
        message = told_message(told)
        if said.is_dm:
            with contextlib.suppress(*CALL_FAILED):
                await self._parts.client.chat_postMessage(
                    channel=said.channel,
                    thread_ts=said.root,
                    unfurl_links=False,
                    unfurl_media=False,
                    **message.content(),
                )
        else:
            await self._whisper(said.channel, said.author, said.root, message)

    async def _whisper(
        self, channel: str, person: str, thread_ts: str | None, message: blocks.Message
    ) -> None:
        """Seen by one person, best effort, and not kept."""
        with contextlib.suppress(*CALL_FAILED):
            await self._parts.client.chat_postEphemeral(
                channel=channel, user=person, thread_ts=thread_ts, **message.content()
            )

    async def _settle(self, said: Said, key: str, payload: dict[str, Any] | None) -> None:
        """Answer a message by a line of ours, and mark it as done without keeping its words: after a restart
        it must not be taken up again, not even when the person's rights have changed.
        """
        async with self._parts.store.begin() as db:
            await inbox.add(
                db,
                team=said.team,
                event_key=said.event_key,
                message_key=said.message_key,
                channel=said.channel,
                thread_ts=said.root,
                ts=said.ts,
                author=said.author,
                author_name="",
                text="",
                session_id=None,
                turn_id=None,
            )
            if payload is not None:
                post = NewPost(key, said.channel, said.root, payload)
                await outbox.add(db, team=said.team, session_id=None, posts=[post])

    async def _tell_outage(self, said: Said) -> bool:
        line = "I cannot reach my database right now. Your message is not lost: I take it up as soon as it is back."
        with contextlib.suppress(*CALL_FAILED):
            await self._parts.client.chat_postMessage(
                channel=said.channel, thread_ts=said.root, text=line, unfurl_links=False, unfurl_media=False
            )
        return True

    def _eyes(self, said: Said) -> None:
        async def react() -> None:
            with contextlib.suppress(*CALL_FAILED):
                await self._parts.client.reactions_add(channel=said.channel, timestamp=said.ts, name="eyes")

        task = asyncio.create_task(react(), name="eyes")
        self._reactions.add(task)
        task.add_done_callback(self._reactions.discard)

    # ---- buttons and slash commands ----

    async def clicked(self, clicked: Clicked) -> None:
        """Approve, Deny or Stop; what came of it is told to the person alone."""
        try:
            answer = await self._click(clicked)
        except (StorageError, OpsthreadError) as error:
            answer = str(error)
        message = _line(_sentence(answer)) if isinstance(answer, str) else answer
        await self._whisper(clicked.channel, clicked.person, clicked.thread_ts, message)

    async def _click(self, clicked: Clicked) -> str | blocks.Message:
        parts = self._parts
        actor = await parts.people.actor(clicked.person)
        if actor.guest:
            return "guests and people of other companies cannot answer here"
        if clicked.action.startswith(blocks.STOP):
            return await self._stop(clicked, actor)
        if clicked.action.startswith((blocks.MEMORIES, FORGET, SHARE)):
            return await self._memory_click(clicked)
        approval = await parts.approvals.by_token(clicked.value)
        if approval is None:
            return "this approval is not known here; nothing was done"
        approve = clicked.action.startswith(blocks.APPROVE)
        _, line = await parts.approvals.decide(approval, actor=actor, approve=approve)
        return line

    async def _memory_click(self, clicked: Clicked) -> str | blocks.Message:
        who = Who(self._parts.us.team, clicked.person, clicked.person)
        memories, action = self._parts.memories, clicked.action.partition(":")[0]
        if action == SHARE:
            return await memories.share_click(clicked.value, who)
        if not clicked.value.isdecimal() or len(clicked.value) > MOST_DIGITS:
            return "this button is not known here; nothing was done"
        if action == FORGET:
            return await memories.forget_click(int(clicked.value), who)
        return told_message(await memories.used_in(int(clicked.value), who))

    async def _stop(self, clicked: Clicked, actor: Actor) -> str:
        parts = self._parts
        try:
            async with parts.store.begin() as db:
                turn = await turns.get(db, int(clicked.value))
                session = await sessions.get(db, turn.session_id)
        except (NotFound, ValueError):
            return "there is nothing to stop"
        if session.team != parts.us.team or session.channel != clicked.channel:
            return "this belongs to another thread; nothing was stopped"
        before = await parts.desk.stop(turn.id, by=actor.id, by_name=actor.name)
        if before in (TurnState.DONE, TurnState.FAILED, TurnState.STOPPED):
            return "it is over already"
        return "stopping; an approved change that is under way is let finish"

    async def commanded(self, commanded: Commanded) -> blocks.Message:
        """The answer to a slash command, for the person alone."""
        parts = self._parts
        try:
            person = await parts.people.person(commanded.person)
            if person.refused:
                return _line("Guests and people of other companies cannot work with me here.")
            words = parts.redactor.text(commanded.text).text
            wanted = await parts.memories.read(words, team=parts.us.team, person=person.id)
            if wanted.intent not in (Intent.WORK, Intent.MEANT_WORK):
                who = Who(parts.us.team, person.id, person.id)
                return told_message(await parts.memories.answer(wanted, who))
            request = commands.parse(words) or commands.Help(unknown=words)
            return await parts.commands.answer(request, person=person.id, channel=commanded.channel)
        except (StorageError, OpsthreadError) as error:
            return _line(_sentence(str(error)))


def _line(text: str) -> blocks.Message:
    return blocks.note(text)[0]


def _nothing_said(said: Said) -> str:
    if said.files:
        return (
            f"I cannot read attachments yet ({', '.join(said.files[:3])}). Please tell me in words what it shows"
            " and what you want to know."
        )
    return "I am listening. Say what to look into, for example: why does web-1 answer 502?"


def _sentence(text: str) -> str:
    text = text[:1].upper() + text[1:]
    return text if text.endswith((".", "?", "!", "…")) else text + "."
