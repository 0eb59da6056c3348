"""`/ops sessions|show|search|mode|help`, and the same words by mention: past sessions, for whom they concern.

A person sees the sessions they took part in, those of channels they are a member of, and those of the
channel they ask in. Lists read like a logbook: time, title, people, hosts, state, outcome, link.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, tzinfo
from typing import assert_never

from bot.access import Actor, hosts_for
from bot.slack import blocks
from bot.slack.blocks import Message, short
from bot.slack.incoming import Us
from bot.slack.people import People
from bot.slack.text import escape
from bot.turns.modes import Modes
from storage import audit, commands, inbox, milestones, search, sessions
from storage.audit import AuditEvent
from storage.control import Mode
from storage.errors import NotFound
from storage.history import history
from storage.recall import messages
from storage.records import Command, Milestone, Origin, Role, Session
from storage.store import Db, Store

PAGE = 10
READ = 500  # sessions looked through for a list; older ones are found by searching


@dataclass(frozen=True, slots=True)
class Sessions:
    page: int


@dataclass(frozen=True, slots=True)
class Show:
    session_id: int


@dataclass(frozen=True, slots=True)
class Search:
    words: str


@dataclass(frozen=True, slots=True)
class Help:
    unknown: str = ""  # what was asked for and is no command


@dataclass(frozen=True, slots=True)
class SetMode:
    mode: Mode | None  # None: only say it
    why: str = ""


Request = Sessions | Show | Search | SetMode | Help


def parse(text: str) -> Request | None:
    """A command's words; None: these are not ours (by mention they are a question to the bot)."""
    words = " ".join(text.split())
    if re.fullmatch(r"help|\?", words, re.IGNORECASE):
        return Help()
    if found := re.fullmatch(r"sessions(?: (?:page )?(\d{1,4}))?", words, re.IGNORECASE):
        return Sessions(max(1, int(found[1] or 1)))
    if found := re.fullmatch(r"show #?(\d{1,15})", words, re.IGNORECASE):
        return Show(int(found[1]))
    if found := re.fullmatch(r"mode(?: (normal|read-only|stopped)(?: (.+))?)?", words, re.IGNORECASE):
        return SetMode(Mode(found[1].lower()) if found[1] else None, found[2] or "")
    if found := re.fullmatch(r"search (.+)", words, re.IGNORECASE):
        return Search(found[1])
    return None


@dataclass(frozen=True, slots=True)
class _Asker:
    """Who asks, and where: what they may see hangs on both."""

    person: str
    channel: str


class Commands:
    """Answers requests. url: the workspace's address (auth.test), for permalinks."""

    def __init__(
        self,
        store: Store,
        people: People,
        us: Us,
        *,
        modes: Modes,
        url: str,
        zone: tzinfo,
        command_name: str,
    ) -> None:
        self._modes = modes
        self._store = store
        self._people = people
        self._us = us
        self._url = url
        self._zone = zone
        self._name = command_name

    async def answer(self, request: Request, *, person: str, channel: str) -> Message:
        """Raises StorageError when the database does not answer."""
        asker = _Asker(person, channel)
        match request:
            case Help():
                return self._help(request.unknown)
            case Sessions():
                return await self._sessions(asker, request.page)
            case Show():
                return await self._show(asker, request.session_id)
            case Search():
                return await self._search(asker, request.words)
            case SetMode():
                return await self._mode(asker, request)
            case _:
                assert_never(request)

    def _help(self, unknown: str) -> Message:
        name = escape(self._name)
        lines = [
            f"`{name} sessions` or `{name} sessions 2` · past sessions, newest first",
            f"`{name} show 12` · one session: milestones, commands, answer",
            f"`{name} search redis timeout` · sessions in which these words stand",
            f"`{name} mode` · what may be done on hosts now; `{name} mode read-only` or `{name} mode stopped` holds me",
            f"`{name} memories` · what I keep of you; `remember …`, `forget 12`, `share 12`, `pin …`, `memory off`",
            "Mention me, or write to me directly, to have something looked into. In my threads you need not"
            " mention me again, unless people are talking with one another.",
            "In a thread, where Slack takes no slash commands, the same words work by mention:"
            " `sessions`, `show 12`, `search …`, `help`.",
        ]
        if unknown:
            lines.insert(0, f"“{escape(short(unknown, 100))}” is no command of mine.")
        return blocks.listing("What I can do", lines)

    async def _mode(self, asker: _Asker, request: SetMode) -> Message:
        if request.mode is None:
            return blocks.note(await self._modes.say(self._us.team))[0]
        actor, channel, shared = await self._rights(asker)
        said = await self._modes.ask(actor, request.mode, channel=channel, shared=shared, why=request.why)
        return blocks.note(said[:1].upper() + said[1:])[0]

    async def _rights(self, asker: _Asker) -> tuple[Actor, str, bool]:
        """The asker, the channel as the access rules name it, and whether another company reads along there."""
        actor = await self._people.actor(asker.person)
        if asker.channel.startswith("D"):
            return actor, "dm", False
        return actor, asker.channel, await self._people.shared(asker.channel)

    async def _usable(self, asker: _Asker) -> frozenset[str]:
        actor, channel, shared = await self._rights(asker)
        inventory = self._modes.inventory(self._us.team)
        return frozenset(host.name for host in hosts_for(actor, channel, inventory, shared=shared))

    async def _sessions(self, asker: _Asker, page: int) -> Message:
        async with self._store.begin() as db:
            found = await sessions.list_(db, team=self._us.team, limit=READ)
            own = await inbox.sessions_of(db, team=self._us.team, person=asker.person)
        visible = [each for each in found if await self._may_see(asker, each, own)]
        pages = max(1, -(-len(visible) // PAGE))
        shown = visible[(page - 1) * PAGE : page * PAGE]
        if not visible:
            return blocks.listing("No sessions yet", ["Mention me in a channel to begin one."])
        if not shown:
            return blocks.listing(
                f"There are {pages} pages", [f"`{self._name} sessions {pages}` is the last."]
            )
        async with self._store.begin() as db:
            lines = [self._line(each, await _outcome(db, each)) for each in shown]
        more = f"{self._name} sessions {page + 1} goes on · " if page < pages else ""
        title = f"Sessions, page {page} of {pages}" if pages > 1 else "Sessions"
        return blocks.listing(title, lines, hint=f"{more}{self._name} show NUMBER tells one")

    async def _search(self, asker: _Asker, words: str) -> Message:
        await messages.catch_up(self._store)
        async with self._store.begin() as db:
            hits = await search.search(db, words, by="session", team=self._us.team, limit=50)
            own = await inbox.sessions_of(db, team=self._us.team, person=asker.person)
            found = [await sessions.get(db, hit.session_id) for hit in hits]
        visible = [each for each in found if await self._may_see(asker, each, own)][:PAGE]
        title = f"Sessions about “{short(words, 80)}”"
        if not visible:
            return blocks.listing(title, ["None that you may see. Fewer or other words may find more."])
        async with self._store.begin() as db:
            lines = [self._line(each, await _outcome(db, each)) for each in visible]
        hint = f"{self._name} show NUMBER tells one · this searched past sessions, nothing on the hosts"
        return blocks.listing(title, lines, hint=hint)

    async def _show(self, asker: _Asker, session_id: int) -> Message:
        nothing = blocks.listing(
            f"There is no session {session_id} that you may see", [f"`{self._name} sessions` lists those."]
        )
        async with self._store.begin() as db:
            try:
                session = await sessions.get(db, session_id)
            except NotFound:
                return nothing
            own = await inbox.sessions_of(db, team=self._us.team, person=asker.person)
        if not await self._may_see(asker, session, own):
            return nothing
        async with self._store.begin() as db:
            await audit.add(
                db,
                AuditEvent.SESSION_VIEWED,
                team=session.team,
                person=asker.person,
                session_id=session.id,
                detail={"from": asker.channel},
            )
            reached = await milestones.of_session(db, session.id, limit=30)
            ran = await commands.of_session(db, session.id)
            said = await history(db, session.id, limit=50)
        lines = [self._line(session, "")]
        lines += [self._milestone(each) for each in reached]
        usable = await self._usable(asker)
        seen = [each for each in ran if each.host in usable]
        lines += [_ran(each) for each in seen[-30:]]
        if len(seen) > 30:
            lines.append(f"… and {len(seen) - 30} commands before these")
        if len(seen) < len(ran):
            lines.append(f"… {len(ran) - len(seen)} commands ran on hosts that you may not use from here")
        answers = [m.text for m in said if m.role is Role.ASSISTANT and m.text.strip() and not m.tool_calls]
        if answers:
            lines.append("*Last answer* · " + escape(short(answers[-1], 2_500)))
        return blocks.listing(f"Session {session.id} · {short(session.title, 120)}", lines)

    async def _may_see(self, asker: _Asker, session: Session, own: frozenset[int]) -> bool:
        if session.team != self._us.team:
            return False
        if session.owner == asker.person or session.id in own:
            return True
        if session.origin is not Origin.SLACK or session.channel.startswith("D"):
            return False
        return session.channel == asker.channel or await self._people.in_channel(
            asker.person, session.channel
        )

    def _line(self, session: Session, outcome: str) -> str:
        title = escape(short(session.title or "(no title)", 90))
        if session.origin is Origin.SLACK and session.thread_ts:
            ts = session.thread_ts.replace(".", "")
            title = blocks.link(
                f"{self._url}archives/{session.channel}/p{ts}", short(session.title or "thread", 90)
            )
        parts = [
            f"*{session.id}*",
            self._when(session.updated_at),
            title,
            escape(", ".join(session.people[:4])),
            escape(", ".join(session.hosts[:6])) + (" …" if len(session.hosts) > 6 else ""),
            escape(session.state),
            escape(short(outcome, 160)),
        ]
        return " · ".join(part for part in parts if part)

    def _milestone(self, milestone: Milestone) -> str:
        kind = milestone.kind.replace("_", " ")
        return f"{self._when(milestone.created_at)} · *{kind}* · {escape(short(milestone.text, 300))}"

    def _when(self, at: datetime) -> str:
        return f"{at.astimezone(self._zone):%Y-%m-%d %H:%M}"


async def _outcome(db: Db, session: Session) -> str:
    last = await milestones.of_session(db, session.id, limit=1)
    return last[0].text if last else ""


def _ran(command: Command) -> str:
    status = (
        command.note or "no exit status" if command.exit_status is None else f"exit {command.exit_status}"
    )
    took = f" · {blocks.duration(command.seconds)}" if command.seconds is not None else ""
    run = escape(short(" ⏎ ".join(command.run.split("\n")), 300)).replace("`", "ˋ")
    return f"{escape(command.host)}  `{run}`  {escape(status)}{took}"
