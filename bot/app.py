"""The composition root: builds every part once, from Settings, and takes it down in order."""

from __future__ import annotations

import asyncio
import os
import secrets
import socket
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from pydantic import SecretStr

from bot.access import LOCAL, Actor
from bot.account import os_account
from bot.agent.loop import Limits
from bot.audit.reloads import inventory_reloads
from bot.audit.sealer import EVERY_S, Sealer
from bot.database import database
from bot.demo.host import DemoHost, write_hosts_yml
from bot.demo.practice import PracticeModel
from bot.errors import SettingsError
from bot.events import Screen
from bot.journal import Door, Journal
from bot.meaning import load_meaning
from bot.model import Model, OpenAIModel
from bot.policy.rules import Rules, load_rules
from bot.redact import RedactionWorker
from bot.schedule import Ticks
from bot.settings import Settings
from bot.ssh.inventory import Inventory, LiveInventory
from bot.ssh.remote import Remote
from bot.tools.authority import Authority
from bot.tools.execution import Executor
from bot.tools.list_hosts import ListHosts
from bot.tools.milestone import MilestoneTool
from bot.tools.plan import PlanTool
from bot.tools.run_command import RunCommand
from bot.tools.toolbox import Toolbox
from bot.turns.approval import Approvals
from bot.turns.desk import Desk, DeskParts
from bot.turns.learning import Learner
from bot.turns.leftovers import Leftovers
from bot.turns.memories import Memories
from bot.turns.remembering import Remembering
from bot.turns.turn import TurnParts
from storage import turns
from storage.errors import StorageError
from storage.memories.ending import decay
from storage.recall import messages
from storage.records import Claim, Front, Origin, Session, Turn
from storage.store import Store

if TYPE_CHECKING:
    from bot.slack.front import SlackFront

LEARN_S = 2.0
INDEX_S = 60.0  # between two looks for messages without words; whoever searches does not wait for it
DECAY_S = 6 * 3600.0

ScreenFor = Callable[[Session, Turn], Screen]
ActorFor = Callable[[str, str], Awaitable[Actor]]  # by team and id
SharedFor = Callable[[Turn], Awaitable[bool]]


@dataclass(frozen=True, slots=True)
class Practice:
    """Which parts are the demonstration's: the host is this machine, the model is no language model."""

    host: bool
    model: bool


@dataclass(frozen=True, slots=True)
class App:
    """A process's parts. model_name is what answers, for people to see."""

    store: Store
    desk: Desk
    approvals: Approvals
    inventory: LiveInventory
    remote: Remote
    memories: Memories
    practice: Practice
    model_name: str


def account() -> str:
    """The OS account, as access rules name it: `local:<account>`."""
    return LOCAL + os_account()


async def local_actor(team: str, person: str) -> Actor:
    """A terminal's person: the OS account, in the team of the session."""
    return Actor(team=team, id=person, name=person.removeprefix(LOCAL))


async def not_shared(_turn: Turn) -> bool:
    """A terminal is shared with no other company."""
    return False


@asynccontextmanager
async def terminal(settings: Settings, *, screen: ScreenFor, demo: bool = False) -> AsyncGenerator[App]:
    """A terminal's process. demo: this machine is the host even if OPSTHREAD_HOSTS is set."""
    practice = Practice(
        host=demo or settings.hosts is None,
        model=settings.openai_api_key is None and settings.openai_base_url is None,
    )
    async with AsyncExitStack() as stack:
        store = await stack.enter_async_context(database(settings))
        live = await _inventory(settings, practice, stack, store)
        yield await stack.enter_async_context(
            _app(
                settings,
                front=Front.TERMINAL,
                screen=screen,
                actor=local_actor,
                shared=not_shared,
                practice=practice,
                store=store,
                live=live,
                owner=process_name(),
            )
        )


@dataclass(frozen=True, slots=True)
class Served:
    """The Slack bot's process."""

    app: App
    front: SlackFront

    async def ready(self) -> dict[str, bool]:
        """Which of the parts we depend on can be reached now."""
        try:
            async with self.app.store.begin(limit_s=5):
                database_answers = True
        except StorageError:
            database_answers = False
        return {"database": database_answers, "slack": await self.front.connected()}

    async def stop(self, work: asyncio.Task[None]) -> None:
        """In order: take nothing more in, finish or hand over what is at work, deliver what is due."""
        await self.front.stop_intake()
        await self.app.desk.close()
        await asyncio.wait({work}, timeout=10)
        await self.front.close()


@asynccontextmanager
async def slack(settings: Settings) -> AsyncGenerator[Served]:
    """The Slack bot: listens and delivers while the block is open; `desk.serve` does the work."""
    from bot.slack.front import SlackConfig, SlackFront  # a terminal does without

    config = SlackConfig.checked(
        bot_token=_secret(settings.slack_bot_token),
        app_token=_secret(settings.slack_app_token),
        api_url=settings.slack_api_url,
        command_name=settings.command_name,
        timezone=settings.timezone,
    )
    if settings.openai_api_key is None and settings.openai_base_url is None:
        raise SettingsError(
            "OPENAI_API_KEY is not set; set it, or OPENAI_BASE_URL for an endpoint without key"
        )
    async with AsyncExitStack() as stack:
        store = await stack.enter_async_context(database(settings))
        live = await _inventory(settings, Practice(host=False, model=False), stack, store)
        owner = process_name()
        front = SlackFront(config, store, inventory=_current(live), redactor=settings.redactor(), owner=owner)
        await front.open()
        stack.push_async_callback(front.close)
        app = await stack.enter_async_context(
            _app(
                settings,
                front=Front.SLACK,
                screen=front.screen,
                actor=front.actor,
                shared=front.shared,
                practice=Practice(host=False, model=False),
                store=store,
                live=live,
                owner=owner,
                team=front.team,
            )
        )
        await front.start(app.desk, app.approvals, app.memories)
        yield Served(app, front)


def mirror(settings: Settings, session: Session, turn: Turn) -> Screen | None:
    """For a terminal's turn on a Slack session: the screen whose posts reach its thread; else None."""
    if session.origin is not Origin.SLACK:
        return None
    from bot.slack.screen import posts_only

    return posts_only(session, turn, zone=ZoneInfo(settings.timezone))


def _current(live: LiveInventory) -> Callable[[str], Inventory]:
    """A team's inventory as it is at the moment of asking."""

    def inventory(team: str) -> Inventory:
        return live.current.for_team(team)

    return inventory


def _secret(value: SecretStr | None) -> str | None:
    return value.get_secret_value() if value is not None else None


def process_name() -> str:
    """A name that no other process has."""
    return f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(4)}"


@asynccontextmanager
async def _app(
    settings: Settings,
    *,
    front: Front,
    screen: ScreenFor,
    actor: ActorFor,
    shared: SharedFor,
    practice: Practice,
    store: Store,
    live: LiveInventory,
    owner: str,
    team: str | None = None,
) -> AsyncGenerator[App]:
    async with AsyncExitStack() as stack:
        rules = load_rules(settings.extra_rules())
        sealer = Sealer.made(store, secret=_secret(settings.secret_key), sink=settings.audit_sink)
        stack.push_async_callback(sealer.close)  # after the desk: what it still writes is sealed too
        model, model_name = await _model(settings, practice, stack)
        redaction = RedactionWorker(settings.redactor())
        stack.push_async_callback(redaction.aclose)
        remote = Remote()
        stack.push_async_callback(remote.close)

        inventory = _current(live)
        remembering = Remembering(store, Learner(store), settings.timezone, load_meaning(settings.embeddings))
        workshop = _Workshop(
            settings, store, inventory, lambda: rules, remote, model, redaction, remembering, actor, shared
        )
        desk = Desk(
            DeskParts(
                store=store,
                front=front,
                owner=owner,
                lease_s=settings.lease_s,
                clean=workshop.clean,
                screen=screen,
                journal=workshop.journal,
                turn_parts=workshop.turn_parts,
                turns_per_person=settings.turns_per_person,
                team=team,
            )
        )
        stack.push_async_callback(desk.close)
        approvals = Approvals(store=store, inventory=inventory, actor=actor, shared=shared, screen=screen)
        leftovers = Leftovers(
            store=store, front=front, remote=remote, inventory=inventory, screen=screen, redaction=redaction
        )
        await stack.enter_async_context(
            Ticks(
                {
                    "expire approvals": (2.0, approvals.expire),
                    "stuck turns": (5.0, _stuck(store)),
                    "changes left running": (10.0, leftovers.collect),
                    "seal the audit log": (EVERY_S, sealer.tick),
                    "learn from turns": (LEARN_S, workshop.remembering.learner.tick),
                    "index messages": (INDEX_S, partial(messages.catch_up, store)),
                    "close unused cases": (DECAY_S, partial(decay, store)),
                }
            )
        )
        memories = Memories(store, settings.redactor(), settings.timezone)
        yield App(store, desk, approvals, live, remote, memories, practice, model_name)


def _stuck(store: Store) -> Callable[[], Awaitable[None]]:
    async def wake() -> None:
        async with store.begin() as db:
            await turns.stuck(db)

    return wake


async def _inventory(
    settings: Settings, practice: Practice, stack: AsyncExitStack, store: Store
) -> LiveInventory:
    path = settings.hosts
    if practice.host:
        folder = settings.data_dir / "demo"
        host = DemoHost(folder)
        port = await host.start()
        stack.push_async_callback(host.stop)
        path = write_hosts_yml(folder, port)
    if path is None:
        raise SettingsError(
            "OPSTHREAD_HOSTS is not set; `opsthread init` writes a sample hosts.yml to point it at"
        )
    live = LiveInventory(Path(path), inventory_reloads(store, Path(path)))
    await live.start()
    stack.push_async_callback(live.close)
    return live


async def _model(settings: Settings, practice: Practice, stack: AsyncExitStack) -> tuple[Model, str]:
    base_url, name = settings.openai_base_url, settings.model
    key = settings.openai_api_key.get_secret_value() if settings.openai_api_key else "none"
    if practice.model:
        endpoint = PracticeModel()
        base_url, name, key = await endpoint.start(), "practice model (no language model)", "none"
        stack.push_async_callback(endpoint.stop)
    model = OpenAIModel(base_url=base_url, api_key=key, name=name, budget_s=settings.model_budget_s)
    stack.push_async_callback(model.aclose)
    return model, name


@dataclass(frozen=True, slots=True)
class _Workshop:
    """Builds what one claimed turn works with."""

    settings: Settings
    store: Store
    inventory: Callable[[str], Inventory]
    rules: Callable[[], Rules]
    remote: Remote
    model: Model
    redaction: RedactionWorker
    remembering: Remembering
    actor: ActorFor
    shared: SharedFor

    async def clean(self, text: str) -> str:
        """What a person says, without secrets."""
        return (await self.redaction.text(text)).text

    def journal(self, claim: Claim, screen: Screen) -> Journal:
        door = Door(
            store=self.store,
            screen=screen,
            claim=claim,
            redaction=self.redaction,
            os_account=os_account() if claim.turn.front is Front.TERMINAL else "",
            per_minute=self.settings.commands_per_minute,
        )
        return Journal(door, zone=self.settings.timezone)

    def turn_parts(self, claim: Claim, journal: Journal) -> TurnParts:
        turn = claim.turn
        authority = Authority(
            actor=lambda: self.actor(turn.team, turn.person),
            channel=turn.channel,
            shared=lambda: self.shared(turn),
            inventory=lambda: self.inventory(turn.team),
        )
        executor = Executor(remote=self.remote, journal=journal)
        toolbox = Toolbox(
            [
                RunCommand(
                    authority=authority,
                    rules=self.rules,
                    executor=executor,
                    ledger=journal.ledger,
                    approval_s=self.settings.approval_s,
                ),
                ListHosts(authority),
                MilestoneTool(journal),
                PlanTool(journal),
            ]
        )
        return TurnParts(
            store=self.store,
            model=self.model,
            toolbox=toolbox,
            authority=authority,
            journal=journal,
            limits=Limits(steps=self.settings.max_steps, seconds=self.settings.max_turn_s),
            redactor=self.redaction.redactor,
            remembering=self.remembering,
            max_tokens=self.settings.max_tokens,
            zone=self.settings.timezone,
        )
