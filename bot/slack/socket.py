"""The Socket Mode connection: opened, watched, built anew when it does not come back.

The SDK reconnects by itself, but not always: a handler that was closed never connects again, and one that
keeps an expired address tries it for ever (bolt-python#1529, #417). So a watchdog replaces it.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import time
from collections.abc import Callable

import aiohttp
from aiohttp import WSMessage
from slack_bolt.adapter.socket_mode.async_handler import AsyncSocketModeHandler
from slack_bolt.async_app import AsyncApp
from slack_sdk.errors import SlackApiError, SlackClientError
from slack_sdk.socket_mode.async_client import AsyncBaseSocketModeClient

from bot import log
from bot.errors import SettingsError
from bot.slack import web

PING_S = 5.0  # between pings; four missed ones make a connection stale
WATCH_S = 1.0
REBUILD_S = 15.0  # without a connection, then the handler is replaced

Hello = Callable[[float | None], None]


class Socket:
    """One connection at a time. on_hello: told at every new one since when nothing may have been heard.

    The time is time.time() of the last sign of life before, None at the first connection.
    """

    def __init__(self, app: AsyncApp, *, app_token: str, api_url: str, on_hello: Hello) -> None:
        self._app = app
        self._token = app_token
        self._client = web.client(app_token, api_url, retrying=False)
        self._local = web.local(api_url)
        self._on_hello = on_hello
        self._handler: AsyncSocketModeHandler | None = None
        self._connecting: asyncio.Task[None] | None = None
        self._watchdog: asyncio.Task[None] | None = None
        self._alive: float | None = None
        self._log = log.get("slack.socket")

    async def start(self) -> None:
        """Raises SettingsError when Slack refuses the token; while Slack is away it keeps trying."""
        try:
            await self._client.apps_connections_open(app_token=self._token)
        except SlackApiError as error:
            if token_refused(error):
                raise SettingsError(
                    f"SLACK_APP_TOKEN: Slack says {error.response.get('error')}; it needs an app-level token"
                    " (xapp-…) with connections:write, made under Basic Information of the app"
                ) from None
        except (SlackClientError, aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
            self._log.warning("Slack cannot be reached; trying again", fault=type(error).__name__)
        self._build()
        self._watchdog = asyncio.create_task(self._watch(), name="socket watchdog")

    async def stop(self) -> None:
        if self._watchdog is not None:
            self._watchdog.cancel()
            await asyncio.gather(self._watchdog, return_exceptions=True)
            self._watchdog = None
        await self._drop()

    async def connected(self) -> bool:
        return self._handler is not None and bool(await self._handler.client.is_connected())

    def _build(self) -> None:
        handler = AsyncSocketModeHandler(
            self._app,
            self._token,
            web_client=self._client,
            ping_interval=PING_S,
            logger=logging.getLogger("slack_sdk.socket_mode"),
        )
        if self._local:
            handler.client.proxy = None
        handler.client.on_message_listeners.append(self._heard)
        self._handler = handler
        self._connecting = asyncio.create_task(_connect(handler.client), name="socket connect")

    async def _drop(self) -> None:
        handler, self._handler = self._handler, None
        connecting, self._connecting = self._connecting, None
        if connecting is not None:
            connecting.cancel()
            await asyncio.gather(connecting, return_exceptions=True)
        if handler is None:
            return
        client = handler.client
        tasks = [
            getattr(client, name, None)
            for name in ("message_processor", "current_session_monitor", "message_receiver")
        ]
        with contextlib.suppress(aiohttp.ClientError, TimeoutError, OSError):
            async with asyncio.timeout(5):
                await _close(client)
        await asyncio.gather(*(task for task in tasks if task is not None), return_exceptions=True)

    async def _heard(self, message: WSMessage) -> None:
        before, self._alive = self._alive, time.time()
        with contextlib.suppress(ValueError, TypeError):
            data = json.loads(message.data)
            if isinstance(data, dict) and data.get("type") == "hello":
                self._log.info("connected to Slack")
                self._on_hello(before)

    async def _watch(self) -> None:
        missing_since: float | None = None
        while True:
            await asyncio.sleep(WATCH_S)
            if await self.connected():
                missing_since = None
                self._alive = time.time()
                continue
            now = time.monotonic()
            missing_since = missing_since or now
            if now - missing_since >= REBUILD_S:
                self._log.warning("no connection to Slack; building a new one")
                await self._drop()
                self._build()
                missing_since = None


def token_refused(error: SlackApiError) -> bool:
    """Whether Slack says that the token itself is wrong, so that trying again is of no use."""
    return error.response.get("error") in (
        "invalid_auth",
        "not_authed",
        "not_allowed_token_type",
        "account_inactive",
        "token_revoked",
        "token_expired",
        "no_permission",
        "missing_scope",
    )


async def _connect(client: AsyncBaseSocketModeClient) -> None:
    await client.connect()  # type: ignore[no-untyped-call]


async def _close(client: AsyncBaseSocketModeClient) -> None:
    await client.close()  # type: ignore[no-untyped-call]
