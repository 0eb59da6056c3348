"""The outbox's worker: delivers posts to Slack once and in order, whatever breaks on the way.

A post whose outcome is unknown (a crash, a timeout) is looked for in Slack by the key in its metadata
before it is posted again. Rate limits and outages delay; what Slack refuses for good is logged and passed
over, so that the posts after it go on.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import aiohttp
from slack_sdk.errors import SlackApiError, SlackClientError
from slack_sdk.web.async_client import AsyncWebClient
from slack_sdk.web.async_slack_response import AsyncSlackResponse

from bot import log
from bot.slack.blocks import Message
from storage import outbox
from storage.errors import StorageError
from storage.records import NewPost, Post, PostState
from storage.store import Db, Store

EVENT_TYPE = "opsthread"  # of our metadata: event_payload.post is the post's key
POLL_S = 1.0
LEASE_S = 8.0  # after which another process takes over the posts of one that died; extended meanwhile
TRY_S = 60.0
EDIT_GAP_S = 1.25  # chat.update is Tier 3: 50 a minute for the whole app
AT_ONCE = 8  # posts under way, each in another thread
LONGEST_PAUSE_S = 60.0

_BUSY = (  # Slack's own trouble: the same call may go through later
    "internal_error",
    "fatal_error",
    "service_unavailable",
    "request_timeout",
    "team_added_to_org",
    "message_limit_exceeded",
    "accesslimited",
)
_OURS = (  # nothing is wrong with the post: it waits until somebody mends the app's token or scopes
    "invalid_auth",
    "not_authed",
    "account_inactive",
    "token_revoked",
    "token_expired",
    "missing_scope",
    "ekm_access_denied",
)
_BLOCKS = ("invalid_blocks", "invalid_blocks_format", "msg_blocks_too_long")


@dataclass(frozen=True, slots=True)
class Outcome:
    """ts: of the new message. retry_s: try again after so many seconds. failed: why it never will be."""

    ts: str | None = None
    retry_s: float | None = None
    failed: str | None = None
    error: str = ""
    unsure: bool = False


class Sender:
    """One a process. client: without retry handlers, since a blind second try could post twice."""

    def __init__(self, store: Store, client: AsyncWebClient, *, team: str, owner: str) -> None:
        self._store = store
        self._client = client
        self._team = team
        self._owner = owner
        self._wake = asyncio.Event()
        self._stopping = False
        self._under_way: dict[asyncio.Task[None], int] = {}
        self._pace = asyncio.Lock()
        self._free_at = 0.0
        self._places: dict[str, tuple[str, str]] = {}  # of messages that are being edited
        self._tasks: list[asyncio.Task[None]] = []
        self._log = log.get("slack.sender")

    async def start(self) -> None:
        self._tasks = [
            asyncio.create_task(self._listen(), name="outbox listener"),
            asyncio.create_task(self._work(), name="outbox sender"),
            asyncio.create_task(self._beat(), name="outbox lease"),
        ]

    async def stop(self, *, drain_s: float = 5.0) -> None:
        """Send what is due, at most for drain_s seconds; the rest waits in the database."""
        self._stopping = True
        self._wake.set()
        if self._tasks:
            await asyncio.wait({self._tasks[1]}, timeout=drain_s)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks = []

    async def queue(self, post: NewPost, *, session_id: int | None = None) -> None:
        """Put one post on the outbox; a database that does not answer is logged, not raised."""
        try:
            async with self._store.begin() as db:
                await outbox.add(db, team=self._team, session_id=session_id, posts=[post])
        except StorageError as error:
            self._log.warning("post not queued", post=post.key, fault=str(error))
        else:
            self._wake.set()

    async def edit(self, key: str, content: Callable[[], Message], *, wait_s: float = 5.0) -> bool:
        """Change a delivered post, best effort. False: it is not delivered, or Slack said no.

        Edits of all turns are EDIT_GAP_S apart; content is asked for when its turn has come.
        """
        try:
            found = await self._delivered(key, wait_s)
            if found is None:
                return False
            channel, ts = found
            await self._paced()
            message = content()
            await self._client.chat_update(
                channel=channel, ts=ts, text=message.text, blocks=list(message.blocks)
            )
        except SlackApiError as error:
            self._log.info("progress not shown", post=key, fault=_name(error))
            if (pause := _retry_after(error)) is not None:
                await asyncio.sleep(min(pause, 30.0))
            return False
        except (
            SlackClientError,
            StorageError,
            aiohttp.ClientError,
            TimeoutError,
            OSError,
            ValueError,
        ) as error:
            self._log.info("progress not shown", post=key, fault=type(error).__name__)
            return False
        return True

    async def _paced(self) -> None:
        """Wait for the next free place in Slack's allowance for edits."""
        async with self._pace:
            now = asyncio.get_running_loop().time()
            if self._free_at > now:
                await asyncio.sleep(self._free_at - now)
            self._free_at = max(now, self._free_at) + EDIT_GAP_S

    async def _delivered(self, key: str, wait_s: float) -> tuple[str, str] | None:
        if key in self._places:
            return self._places[key]
        deadline = asyncio.get_running_loop().time() + wait_s
        while True:
            async with self._store.begin() as db:
                found = await outbox.place(db, key)
            if found is not None and found[1] is not None:
                if len(self._places) >= 500:
                    self._places.pop(next(iter(self._places)))
                self._places[key] = (found[0], found[1])
                return self._places[key]
            if found is None:
                return None
            if asyncio.get_running_loop().time() > deadline:
                return None
            await asyncio.sleep(0.1)

    # ---- the worker ----

    async def _listen(self) -> None:
        async for _ in self._store.listen(outbox.CHANNEL):
            self._wake.set()

    async def _work(self) -> None:
        try:
            while True:
                self._wake.clear()
                for post in await self._claim(AT_ONCE - len(self._under_way)):
                    task = asyncio.create_task(self._deliver(post), name=f"post {post.key}")
                    self._under_way[task] = post.id
                if not self._under_way and self._stopping:
                    return
                waker = asyncio.create_task(self._wake.wait())
                await asyncio.wait(
                    {waker, *self._under_way},
                    timeout=0.05 if self._stopping else POLL_S,
                    return_when=asyncio.FIRST_COMPLETED,
                )
                waker.cancel()
                self._clear()
        finally:
            for task in self._under_way:
                task.cancel()
            await asyncio.gather(*self._under_way, return_exceptions=True)

    def _clear(self) -> None:
        for task in [task for task in self._under_way if task.done()]:
            del self._under_way[task]
            if (fault := task.exception()) is not None:
                self._log.error("sender fault", task=task.get_name(), exc_info=fault)

    async def _beat(self) -> None:
        """Keep what is under way ours while we live."""
        while True:
            await asyncio.sleep(LEASE_S / 3)
            if self._under_way:
                with contextlib.suppress(StorageError):
                    async with self._store.begin() as db:
                        ids = list(self._under_way.values())
                        await outbox.extend(db, owner=self._owner, ids=ids, lease_s=LEASE_S)

    async def _claim(self, limit: int) -> list[Post]:
        if limit <= 0:
            return []
        try:
            async with self._store.begin() as db:
                return await outbox.claim(
                    db, owner=self._owner, team=self._team, limit=limit, lease_s=LEASE_S
                )
        except StorageError as error:
            self._log.warning("outbox not read", fault=str(error))
            await asyncio.sleep(POLL_S)
            return []

    async def _deliver(self, post: Post) -> None:
        """One try, and what came of it into the database."""
        try:
            async with asyncio.timeout(TRY_S):
                outcome = await self._try(post)
        except SlackApiError as error:
            outcome = _judge(error, post.attempts)
        except (SlackClientError, aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
            outcome = Outcome(retry_s=_backoff(post.attempts), error=type(error).__name__, unsure=True)
        except StorageError as error:
            outcome = Outcome(retry_s=_backoff(post.attempts), error=str(error), unsure=True)
        await self._record(post, outcome)

    async def _record(self, post: Post, outcome: Outcome) -> None:
        """Kept trying while the database is away: a forgotten delivery would have to be looked for."""
        pause = 0.1
        while True:
            with contextlib.suppress(StorageError):
                async with self._store.begin() as db:
                    await self._write(db, post, outcome)
                break
            await asyncio.sleep(pause)
            pause = min(pause * 2, 5.0)
        if outcome.failed is not None:
            self._log.error(
                "post refused by Slack", post=post.key, channel=post.channel, fault=outcome.failed
            )
        elif outcome.retry_s is not None and (post.attempts == 1 or post.attempts % 10 == 0):
            self._log.warning("post delayed", post=post.key, fault=outcome.error, tries=post.attempts)
        self._wake.set()

    async def _write(self, db: Db, post: Post, outcome: Outcome) -> None:
        if outcome.failed is not None:
            await outbox.failed(db, post.id, error=outcome.failed)
        elif outcome.retry_s is not None:
            at = datetime.now(UTC) + timedelta(seconds=outcome.retry_s)
            await outbox.retry(db, post.id, at=at, error=outcome.error, unsure=outcome.unsure)
        else:
            await outbox.sent(db, post.id, external_ts=outcome.ts)

    # ---- one try ----

    async def _try(self, post: Post) -> Outcome:
        payload = dict(post.payload)
        method = payload.pop("method", "chat.postMessage")
        match method:
            case "chat.postMessage":
                return Outcome(ts=await self._post(post, payload))
            case "chat.update":
                return await self._update(post, payload)
            case "chat.postEphemeral":
                await self._client.chat_postEphemeral(
                    channel=post.channel, thread_ts=post.thread_ts, **payload
                )
                return Outcome()
            case _:
                return Outcome(failed=f"unknown method {method}")

    async def _update(self, post: Post, payload: dict[str, Any]) -> Outcome:
        """Edit the message of an earlier post; without it, say it anew or not at all."""
        ref, otherwise = payload.pop("ref", ""), payload.pop("otherwise", "drop")
        async with self._store.begin() as db:
            ts = await outbox.external_ts(db, ref)
        if ts is not None:
            try:
                await self._client.chat_update(channel=post.channel, ts=ts, **payload)
                return Outcome()
            except SlackApiError as error:
                if _name(error) not in ("message_not_found", "cant_update_message", "edit_window_closed"):
                    raise
        if otherwise == "post":
            return Outcome(ts=await self._post(post, payload))
        return Outcome(failed="the message to edit is not there")

    async def _post(self, post: Post, payload: dict[str, Any]) -> str:
        if post.state is PostState.SENDING and (found := await self._look(post)):
            return found
        metadata = {"event_type": EVENT_TYPE, "event_payload": {"post": post.key}}
        try:
            answer = await self._client.chat_postMessage(
                channel=post.channel, thread_ts=post.thread_ts, metadata=metadata, **payload
            )
        except SlackApiError as error:
            if _name(error) not in _BLOCKS or "blocks" not in payload:
                raise
            # Better plain than lost: the text says the same as the blocks.
            self._log.error("blocks refused by Slack", post=post.key, fault=_name(error))
            plain = {key: value for key, value in payload.items() if key != "blocks"}
            answer = await self._client.chat_postMessage(
                channel=post.channel, thread_ts=post.thread_ts, metadata=metadata, **plain
            )
        return str(answer["ts"])

    async def _look(self, post: Post) -> str | None:
        """The ts under which an earlier try arrived, found by our key in the messages' metadata."""
        async with self._store.begin() as db:
            oldest = await outbox.sent_before(db, post.id) or post.thread_ts or "0"
        cursor: str | None = None
        for _ in range(20):
            asked: dict[str, Any] = {
                "channel": post.channel,
                "oldest": oldest,
                "limit": 200,
                "include_all_metadata": True,
                "cursor": cursor,
            }
            answer: AsyncSlackResponse = (
                await self._client.conversations_replies(ts=post.thread_ts, **asked)
                if post.thread_ts
                else await self._client.conversations_history(**asked)
            )
            for message in answer.get("messages") or []:
                if _key_of(message) == post.key:
                    return str(message["ts"])
            cursor = (answer.get("response_metadata") or {}).get("next_cursor")
            if not cursor:
                return None
        return None


def _key_of(message: Mapping[str, Any]) -> str | None:
    metadata = message.get("metadata") or {}
    if metadata.get("event_type") != EVENT_TYPE:
        return None
    key = (metadata.get("event_payload") or {}).get("post")
    return key if isinstance(key, str) else None


def _judge(error: SlackApiError, attempts: int) -> Outcome:
    name, status = _name(error), error.response.status_code
    if status == 429 or name in ("ratelimited", "rate_limited"):
        return Outcome(retry_s=_retry_after(error) or 1.0, error="ratelimited")
    if status >= 500:
        return Outcome(retry_s=_backoff(attempts), error=f"HTTP {status}", unsure=True)
    if name in _BUSY:
        return Outcome(retry_s=_backoff(attempts), error=name, unsure=True)
    if name in _OURS:
        return Outcome(retry_s=LONGEST_PAUSE_S, error=name)
    return Outcome(failed=name)


def _name(error: SlackApiError) -> str:
    found = error.response.get("error") if isinstance(error.response.data, dict) else None
    return str(found or f"HTTP {error.response.status_code}")


def _retry_after(error: SlackApiError) -> float | None:
    if error.response.status_code != 429:
        return None
    for name, value in error.response.headers.items():
        if name.lower() == "retry-after":
            with contextlib.suppress(ValueError, TypeError):
                return float(value)
    return 1.0


def _backoff(attempts: int) -> float:
    return float(min(0.5 * 2 ** min(attempts - 1, 8), LONGEST_PAUSE_S))
