"""Reads again what people wrote while we were not connected: Slack does not deliver it afterwards.

Threads of live sessions and channels are read from where we were (a little before, since a newer message
may have been heard already); everything goes through the reception like a delivery, which takes each
message once.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from slack_sdk.web.async_client import AsyncWebClient

from bot import log
from bot.slack.incoming import Said, Us, parse
from bot.slack.people import CALL_FAILED
from bot.slack.reception import Reception
from storage import inbox
from storage.inbox import SeenThread
from storage.store import Store

LIVE = timedelta(days=14)  # sessions that moved since are read again
BACK_S = 24 * 3600.0  # how far back a channel is read at most
MARGIN_S = 120.0
MOST_CHANNELS = 200
MOST_PAGES = 10  # of 200 messages


@dataclass(frozen=True, slots=True)
class Plan:
    """How far we had read, taken before new messages can move it."""

    threads: tuple[SeenThread, ...]
    channels: tuple[SeenThread, ...]


class Catchup:
    def __init__(self, store: Store, client: AsyncWebClient, us: Us, reception: Reception) -> None:
        self._store = store
        self._client = client
        self._us = us
        self._reception = reception
        self._log = log.get("slack.catchup")

    async def plan(self) -> Plan:
        """Raises StorageError."""
        async with self._store.begin() as db:
            threads = await inbox.live_threads(db, self._us.team, since=datetime.now(UTC) - LIVE)
            channels = await inbox.channels_seen(db, self._us.team, limit=MOST_CHANNELS)
        return Plan(tuple(threads), tuple(channels))

    async def run(self, plan: Plan, *, since: float | None) -> None:
        """since: time.time() of the last sign of life; None: we come from a start. Raises StorageError."""
        taken = 0
        for thread in plan.threads:
            taken += await self._thread(thread.channel, thread.thread_ts, oldest=_from(thread.last_ts, since))
        known = {seen.channel: seen.last_ts for seen in plan.channels}
        sessions = {(thread.channel, thread.thread_ts) for thread in plan.threads}
        for channel in dict.fromkeys([*known, *await self._channels()]):
            taken += await self._channel(channel, oldest=_from(known.get(channel), since), sessions=sessions)
        self._log.info("read what was missed", threads=len(plan.threads), messages=taken)

    async def _channels(self) -> list[str]:
        """Where we are a member; also direct messages."""
        found: list[str] = []
        cursor: str | None = None
        try:
            while len(found) < MOST_CHANNELS:
                answer = await self._client.users_conversations(
                    types="public_channel,private_channel,mpim,im",
                    exclude_archived=True,
                    limit=200,
                    cursor=cursor,
                )
                found += [channel["id"] for channel in answer["channels"]]
                cursor = (answer.get("response_metadata") or {}).get("next_cursor")
                if not cursor:
                    break
        except CALL_FAILED as error:
            self._log.warning("channels not listed", fault=str(error))
        return found[:MOST_CHANNELS]

    async def _thread(
        self, channel: str, thread_ts: str, *, oldest: float, mentions_only: bool = False
    ) -> int:
        taken = 0
        async for message in self._pages(channel, oldest, thread_ts=thread_ts):
            said = self._said(channel, message)
            if said is not None and float(said.ts) > oldest and (said.mentions_us or not mentions_only):
                await self._reception.said(said)
                taken += 1
        return taken

    async def _channel(self, channel: str, *, oldest: float, sessions: set[tuple[str, str]]) -> int:
        """Messages to us at the top, and in threads under messages as young, that have no session yet."""
        taken = 0
        newest_first = [m async for m in self._pages(channel, oldest)]
        for message in sorted(newest_first, key=lambda m: str(m.get("ts", ""))):
            said = self._said(channel, message)
            if said is not None and (said.mentions_us or said.is_dm):
                await self._reception.said(said)
                taken += 1
            ts = str(message.get("ts", ""))
            if message.get("latest_reply") and (channel, ts) not in sessions:
                only = not channel.startswith("D")
                taken += await self._thread(channel, ts, oldest=oldest, mentions_only=only)
        return taken

    def _said(self, channel: str, message: Mapping[str, Any]) -> Said | None:
        kind = "im" if channel.startswith("D") else "channel"
        event = {**message, "type": "message", "channel": channel, "channel_type": kind}
        found = parse({"type": "event_callback", "event": event}, self._us)
        return found if isinstance(found, Said) else None

    async def _pages(
        self, channel: str, oldest: float, *, thread_ts: str | None = None
    ) -> AsyncIterator[Mapping[str, Any]]:
        """Messages since `oldest`, page by page; a channel that cannot be read is logged and left."""
        cursor: str | None = None
        since = f"{max(oldest, 0):.6f}"
        for _ in range(MOST_PAGES):
            try:
                answer = (
                    await self._client.conversations_replies(
                        channel=channel, ts=thread_ts, oldest=since, limit=200, cursor=cursor
                    )
                    if thread_ts is not None
                    else await self._client.conversations_history(
                        channel=channel, oldest=since, limit=200, cursor=cursor
                    )
                )
            except CALL_FAILED as error:
                self._log.info("not read", channel=channel, thread=thread_ts, fault=str(error))
                return
            for message in answer.get("messages") or []:
                yield message
            cursor = (answer.get("response_metadata") or {}).get("next_cursor")
            if not cursor:
                return


def _from(last_ts: str | None, since: float | None) -> float:
    """Where to begin: what we had read, or earlier if we were deaf before; not further back than BACK_S."""
    floor = time.time() - BACK_S
    points = [point for point in (float(last_ts) if last_ts else None, since) if point is not None]
    return max(min(points) - MARGIN_S if points else floor, floor)
