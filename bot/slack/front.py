"""The Slack front end put together: who we are, what comes in, what goes out, and the order of start and stop."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from zoneinfo import ZoneInfo

import aiohttp
from slack_bolt.async_app import AsyncApp
from slack_sdk.errors import SlackApiError, SlackClientError
from slack_sdk.web.async_client import AsyncWebClient

from bot import log
from bot.access import LOCAL, Actor
from bot.errors import OpsthreadError, SettingsError
from bot.redact import Redactor
from bot.slack import listeners, web
from bot.slack.catchup import Catchup, Plan
from bot.slack.commands import Commands
from bot.slack.incoming import Us
from bot.slack.jobs import Jobs
from bot.slack.people import People
from bot.slack.reception import Approvals, Desk, Parts, Reception
from bot.slack.screen import SlackScreen
from bot.slack.sender import Sender
from bot.slack.socket import Socket, token_refused
from bot.ssh.inventory import Inventory
from bot.turns.memories import Memories
from bot.turns.modes import Modes
from storage import commands
from storage.errors import StorageError
from storage.records import Command, NewPost, Session, Turn
from storage.store import Store


@dataclass(frozen=True, slots=True)
class SlackConfig:
    """What the front end needs of the settings."""

    bot_token: str = field(repr=False)
    app_token: str = field(repr=False)
    api_url: str
    command_name: str
    timezone: str

    @classmethod
    def checked(
        cls, *, bot_token: str | None, app_token: str | None, api_url: str, command_name: str, timezone: str
    ) -> SlackConfig:
        """Raises SettingsError that names every token that is missing."""
        missing = [
            name
            for name, value in (("SLACK_BOT_TOKEN", bot_token), ("SLACK_APP_TOKEN", app_token))
            if not value
        ]
        if missing or not bot_token or not app_token:
            raise SettingsError(
                f"{' and '.join(missing)} must be set to serve Slack; README.md, Slack, says where they are made"
            )
        return cls(bot_token, app_token, api_url, command_name, timezone)


class SlackFront:
    """One a process. Made first, since the desk needs its screens; started once the desk is there.

    inventory: the access rules as they are now, by team. owner: a name that no other process has.
    """

    def __init__(
        self,
        config: SlackConfig,
        store: Store,
        *,
        inventory: Callable[[str], Inventory],
        redactor: Redactor,
        owner: str,
    ) -> None:
        self._config = config
        self._store = store
        self._inventory = inventory
        self._redactor = redactor
        self._owner = owner
        self._zone = ZoneInfo(config.timezone)
        self._jobs = Jobs()
        self._http: aiohttp.ClientSession | None = None
        self._us: Us | None = None
        self._people: People | None = None
        self._sender: Sender | None = None
        self._reception: Reception | None = None
        self._catchup: Catchup | None = None
        self._socket: Socket | None = None
        self._deaf_since: float | None = None
        self._hello = asyncio.Event()
        self.caught_up = asyncio.Event()  # what was written while we were away has been read
        self._first_plan: Plan | None = None
        self._reader: asyncio.Task[None] | None = None
        self._log = log.get("slack.front")

    # ---- what the composition root hands to the desk ----

    def screen(self, session: Session, turn: Turn) -> SlackScreen:
        """A turn's view. Only after `open`."""

        async def recall() -> list[Command]:
            try:
                async with self._store.begin() as db:
                    return await commands.of_turn(db, turn.id)
            except StorageError:
                return []

        _, sender = self._opened()

        async def queue(post: NewPost) -> None:
            await sender.queue(post, session_id=session.id)

        return SlackScreen(
            session=session,
            turn=turn,
            zone=self._zone,
            queue=queue,
            edit=sender.edit,
            recall=recall,
        )

    @property
    def team(self) -> str:
        """The workspace whose token we hold. Only after `open`."""
        assert self._us is not None
        return self._us.team

    async def actor(self, team: str, person: str) -> Actor:
        """A person's rights, now; an OS account's are those of its id. Raises SlackSilent."""
        if person.startswith(LOCAL):
            return Actor(team=team, id=person, name=person.removeprefix(LOCAL))
        return await self._opened()[0].actor(person)

    async def shared(self, turn: Turn) -> bool:
        """Whether another company reads along in the turn's channel. Raises SlackSilent."""
        return turn.channel not in ("dm", "terminal") and await self._opened()[0].shared(turn.channel)

    # ---- start and stop ----

    async def open(self) -> None:
        """Find out who we are. Raises SettingsError when Slack refuses the token."""
        self._http = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=web.CALL_S))
        client = self._client(retrying=True)
        try:
            us, url, enterprise = await self._who_we_are(client)
        except BaseException:
            await self._http.close()
            raise
        self._us, self._url = us, url
        self._people = People(
            client,
            us,
            inventory=lambda: self._inventory(us.team),
            enterprise=enterprise,
            redactor=self._redactor,
        )
        self._sender = Sender(self._store, self._client(retrying=False), team=us.team, owner=self._owner)

    async def start(self, desk: Desk, approvals: Approvals, memories: Memories) -> None:
        """Begin to deliver and to listen; what was missed is read. Raises SettingsError, StorageError."""
        people, sender = self._opened()
        assert self._us is not None
        client = self._client(retrying=True)
        answers = Commands(
            self._store,
            people,
            self._us,
            modes=Modes(self._store, self._inventory),
            url=self._url,
            zone=self._zone,
            command_name=self._config.command_name,
        )
        us = self._us
        self._reception = Reception(
            Parts(
                store=self._store,
                client=client,
                us=us,
                people=people,
                commands=answers,
                desk=desk,
                approvals=approvals,
                memories=memories,
                inventory=lambda: self._inventory(us.team),
                redactor=self._redactor,
            )
        )
        self._catchup = Catchup(self._store, client, us, self._reception)
        self._first_plan = await self._catchup.plan()
        await sender.start()
        app = AsyncApp(client=client, process_before_response=True, logger=logging.getLogger("slack_bolt"))
        listeners.register(
            app,
            us=us,
            reception=self._reception,
            jobs=self._jobs,
            command_name=self._config.command_name,
        )
        self._reader = asyncio.create_task(self._read_again(), name="catch-up")
        self._socket = Socket(
            app, app_token=self._config.app_token, api_url=self._config.api_url, on_hello=self._on_hello
        )
        try:
            await self._socket.start()
        except BaseException:
            await self.stop_intake(grace_s=0)
            raise

    async def stop_intake(self, *, grace_s: float = 5.0) -> None:
        """Take nothing more in; before the desk is closed."""
        if self._socket is not None:
            await self._socket.stop()
        if self._reader is not None:
            self._reader.cancel()
            await asyncio.gather(self._reader, return_exceptions=True)
        await self._jobs.close(grace_s=grace_s)
        if self._reception is not None:
            await self._reception.close()

    async def close(self) -> None:
        """Deliver what is due and let go of everything; after the desk is closed."""
        if self._sender is not None:
            await self._sender.stop()
        if self._http is not None:
            await self._http.close()

    async def connected(self) -> bool:
        """For health: whether Slack can reach us."""
        return self._socket is not None and await self._socket.connected()

    # ---- within ----

    def _opened(self) -> tuple[People, Sender]:
        if self._people is None or self._sender is None:
            raise OpsthreadError("the Slack front end is not open yet")
        return self._people, self._sender

    def _client(self, *, retrying: bool) -> AsyncWebClient:
        return web.client(self._config.bot_token, self._config.api_url, retrying=retrying, session=self._http)

    async def _who_we_are(self, client: AsyncWebClient) -> tuple[Us, str, str | None]:
        """auth.test; while Slack is away it is asked again."""
        pause = 1.0
        while True:
            try:
                found = await client.auth_test()
            except SlackApiError as error:
                if token_refused(error):
                    raise SettingsError(
                        f"SLACK_BOT_TOKEN: Slack says {error.response.get('error')}; it needs the bot token"
                        " (xoxb-…) of the installed app, under OAuth & Permissions"
                    ) from None
                self._log.warning("Slack does not say who we are", fault=str(error.response.get("error")))
            except (SlackClientError, aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
                self._log.warning("Slack cannot be reached; trying again", fault=type(error).__name__)
            else:
                us = Us(str(found["team_id"]), str(found["user_id"]), str(found.get("bot_id") or ""))
                return us, str(found.get("url") or "https://slack.com/"), found.get("enterprise_id")
            await asyncio.sleep(pause)
            pause = min(pause * 2, 30.0)

    def _on_hello(self, deaf_since: float | None) -> None:
        if deaf_since is not None:
            self._deaf_since = min(deaf_since, self._deaf_since or deaf_since)
        self._hello.set()

    async def _read_again(self) -> None:
        """After every new connection: what was written while nobody listened."""
        assert self._catchup is not None
        while True:
            await self._hello.wait()
            self._hello.clear()
            self.caught_up.clear()
            since, self._deaf_since = self._deaf_since, None
            plan, self._first_plan = self._first_plan, None
            try:
                await self._catchup.run(plan or await self._catchup.plan(), since=since)
            except StorageError as error:
                self._log.warning("what was missed is not read yet", fault=str(error))
                await asyncio.sleep(5)
                self._deaf_since = min(filter(None, (since, self._deaf_since)), default=None)
                self._first_plan = plan
                self._hello.set()
            else:
                self.caught_up.set()
