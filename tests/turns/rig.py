"""The real parts around a turn: composition root, Postgres, an SSH host, a scripted model over HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bot import app as root
from bot.access import Actor
from bot.demo.host import DemoHost, write_hosts_yml
from bot.events import Answered, ApprovalAsked, ApprovalClosed, Event, MilestoneReached
from bot.settings import Settings
from bot.terminal.conversation import Conversation
from storage import commands, history, turns
from storage.records import LOCAL_TEAM, Approval, Command, Message, NewPost, Session, Turn, TurnState
from storage.store import Store
from tests.fakes.model import FakeModel, call, calls

HOST = "this-machine"


@dataclass
class Recorder:
    """A Screen that keeps what it is shown, and posts milestones, closed cards and answers as Slack's would."""

    session_id: int
    events: list[Event]

    def posts(self, event: Event) -> tuple[NewPost, ...]:
        match event:
            case Answered(turn=turn):
                key = f"answer:{turn.id}"
            case ApprovalClosed(approval=approval):
                key = f"closed:{approval.id}"
            case MilestoneReached(milestone_id=number):
                key = f"milestone:{number}"
            case _:
                return ()
        return (NewPost(key=key, channel="C1", thread_ts="1.0", payload={"text": "x"}),)

    async def show(self, event: Event) -> None:
        self.events.append(event)

    async def close(self) -> None:
        """Nothing to give back."""


@dataclass
class Rig:
    """One process's worth of parts. `again` opens a second one on the same database."""

    app: root.App
    model: FakeModel
    store: Store
    events: list[Event]
    stack: AsyncExitStack
    settings: Settings
    conversations: list[Conversation] = field(default_factory=list)

    def conversation(self, *, account: str = "local:tester", session: Session | None = None) -> Conversation:
        talk = Conversation(
            store=self.store,
            desk=self.app.desk,
            approvals=self.app.approvals,
            memories=self.app.memories,
            team=LOCAL_TEAM,
            account=account,
            owner="local",
            session=session,
        )
        self.conversations.append(talk)
        return talk

    async def say(self, text: str, *, session: Session | None = None) -> tuple[Conversation, TurnState]:
        talk = self.conversation(session=session)
        return talk, await talk.say(text)

    async def messages(self, session: Session | None) -> list[Message]:
        assert session is not None
        async with self.store.begin() as db:
            return await history.messages(db, session.id)

    async def commands(self, session: Session | None) -> list[Command]:
        assert session is not None
        async with self.store.begin() as db:
            return await commands.of_session(db, session.id)

    async def turn(self, turn_id: int) -> Turn:
        async with self.store.begin() as db:
            return await turns.get(db, turn_id)

    async def decide(
        self, approval: Approval, *, approve: bool, by: str = "local:tester"
    ) -> tuple[bool, str]:
        actor = Actor(team=approval.team, id=by, name=by)
        return await self.app.approvals.decide(approval, actor=actor, approve=approve)

    def last_result(self) -> str:
        """What the model read last."""
        return str(self.model.requests[-1]["messages"][-1]["content"])

    def seen(self, kind: type[Any]) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]

    def approval(self) -> Approval:
        asked: ApprovalAsked = self.seen(ApprovalAsked)[-1]
        return asked.approval


@asynccontextmanager
async def open_rig(
    database_url: str, folder: Path, *, access: str | None = None, **changes: Any
) -> AsyncIterator[Rig]:
    """Parts of one process. The model answers what the test pushes.

    access: rules of hosts.yml instead of the demonstration's; `rig.settings.hosts` is the file.
    """
    async with AsyncExitStack() as stack:
        if access is not None:
            host = DemoHost(folder / "host")
            port = await host.start()
            stack.push_async_callback(host.stop)
            changes["hosts"] = write_hosts_yml(folder / "host", port)
            allow(changes["hosts"], access)
        model = await stack.enter_async_context(FakeModel())
        values = {
            "database_url": database_url,
            "openai_base_url": model.base_url,
            "data_dir": folder,
            "lease_s": 2.0,
            "model_budget_s": 5.0,
            **changes,
        }
        settings = Settings(_env_file=None, **values)
        events: list[Event] = []

        def screen(session: Session, _turn: Turn) -> Recorder:
            return Recorder(session.id, events)

        app = await stack.enter_async_context(root.terminal(settings, screen=screen, demo=access is None))
        yield Rig(app, model, app.store, events, stack, settings)


def allow(hosts_yml: Path, access: str) -> None:
    """Replace the access rules of a hosts.yml."""
    kept = hosts_yml.read_text().partition("access:")[0]
    hosts_yml.write_text(f"{kept}access:\n{access}\n")


async def until(
    condition: Callable[[], bool] | Callable[[], Awaitable[bool]],
    *,
    timeout_s: float = 20.0,
    what: str = "it",
) -> None:
    """Wait for a state; fails with what was waited for."""
    async with asyncio.timeout(timeout_s):
        while True:
            found = condition()
            if found if isinstance(found, bool) else await found:
                return
            await asyncio.sleep(0.02)
    raise AssertionError(what)


def run(command: str, *, hosts: list[str] | None = None, **more: Any) -> Any:
    """A model's answer that runs one command."""
    return calls([call("run_command", hosts=hosts or [HOST], command=command, purpose="test", **more)])
