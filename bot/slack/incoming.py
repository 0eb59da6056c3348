"""What Slack sent -> what it means to us: one payload in, one typed Incoming or a reason to leave it. Pure.

Shapes: docs.slack.dev/reference/events (app_mention, message), …/interaction-payloads/block_actions-payload,
…/interactivity/implementing-slash-commands.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bot.slack import text as words


@dataclass(frozen=True, slots=True)
class Us:
    """Who we are in the workspace (auth.test)."""

    team: str
    bot_user: str
    bot_id: str = ""


@dataclass(frozen=True, slots=True)
class Said:
    """A message a person wrote. raw: as Slack sent it; `plain` makes it readable.

    thread_ts: the root it answers; None at the top of a channel. event_key: Slack's id of the delivery.
    """

    team: str
    channel: str
    ts: str
    thread_ts: str | None
    author: str
    author_team: str | None
    raw: str
    mentions_us: bool
    is_dm: bool
    shared: bool
    event_key: str | None
    files: tuple[str, ...] = ()

    @property
    def root(self) -> str:
        """The thread it belongs to, or would open."""
        return self.thread_ts or self.ts

    @property
    def message_key(self) -> str:
        """The same for every event of this message."""
        return f"{self.team}:{self.channel}:{self.ts}"

    @property
    def session_key(self) -> str:
        return f"{self.channel}:{self.root}"

    def plain(self, us: Us, names: Mapping[str, str]) -> str:
        return words.plain(self.raw, bot_user=us.bot_user, names=names)


@dataclass(frozen=True, slots=True)
class Deleted:
    """Somebody deleted a message. message_key: as it was when it was said."""

    message_key: str


@dataclass(frozen=True, slots=True)
class Clicked:
    """A person pressed a button of ours."""

    team: str
    channel: str
    thread_ts: str | None
    message_ts: str
    person: str
    person_team: str | None
    action: str
    value: str


@dataclass(frozen=True, slots=True)
class Commanded:
    """A slash command. respond_url: where the answer goes, seen by the person alone."""

    team: str
    channel: str
    person: str
    command: str
    text: str
    respond_url: str


@dataclass(frozen=True, slots=True)
class Ignored:
    """Left alone on purpose; the reason is for the log."""

    reason: str


Incoming = Said | Deleted | Clicked | Commanded | Ignored

_MESSAGE_SUBTYPES = (None, "", "file_share", "thread_broadcast")


def parse(payload: Mapping[str, Any], us: Us) -> Incoming:
    """Any payload of Socket Mode or HTTP. Never raises: what is not understood is Ignored."""
    kind = payload.get("type")
    if "command" in payload and "user_id" in payload:
        return _commanded(payload, us)
    if kind == "block_actions":
        return _clicked(payload, us)
    event = payload.get("event")
    if kind != "event_callback" or not isinstance(event, Mapping):
        return Ignored(f"payload of type {kind}")
    if not _for_us(payload, us):
        return Ignored("an event of another workspace")
    return _said(payload, event, us)


def _said(payload: Mapping[str, Any], event: Mapping[str, Any], us: Us) -> Said | Deleted | Ignored:
    kind, subtype = event.get("type"), event.get("subtype")
    if kind not in ("app_mention", "message"):
        return Ignored(f"event {kind}")
    if gone := _deleted_ts(event):
        return Deleted(f"{us.team}:{_text(event, 'channel')}:{gone}")
    if subtype not in _MESSAGE_SUBTYPES:
        return Ignored(f"{kind} of subtype {subtype}")
    author, channel, ts = _text(event, "user"), _text(event, "channel"), _text(event, "ts")
    if event.get("bot_id") or author == us.bot_user:
        return Ignored("written by a bot")
    if not (author and channel and ts):
        return Ignored("a message without author, channel or ts")
    raw = _text(event, "text")
    thread_ts = _text(event, "thread_ts") or None
    files = event.get("files")
    return Said(
        team=us.team,
        channel=channel,
        ts=ts,
        thread_ts=None if thread_ts == ts else thread_ts,
        author=author,
        author_team=_text(event, "user_team") or _text(event, "team") or None,
        raw=raw,
        mentions_us=kind == "app_mention" or us.bot_user in words.mentions(raw),
        is_dm=event.get("channel_type") == "im" or channel.startswith("D"),
        shared=payload.get("is_ext_shared_channel") is True,
        event_key=_text(payload, "event_id") or None,
        files=tuple(_file(f) for f in files if isinstance(f, Mapping)) if isinstance(files, list) else (),
    )


def _deleted_ts(event: Mapping[str, Any]) -> str:
    """The ts of the message that an event says is gone; "" of any other event. A root with replies leaves a tombstone."""
    if event.get("subtype") == "message_deleted":
        return _text(event, "deleted_ts")
    left = event.get("message")
    if (
        event.get("subtype") == "message_changed"
        and isinstance(left, Mapping)
        and left.get("subtype") == "tombstone"
    ):
        return _text(left, "ts")
    return ""


def _clicked(payload: Mapping[str, Any], us: Us) -> Clicked | Ignored:
    actions, user = payload.get("actions"), payload.get("user")
    container = payload.get("container")
    box = container if isinstance(container, Mapping) else {}
    channel = payload.get("channel")
    where = _text(channel, "id") if isinstance(channel, Mapping) else _text(box, "channel_id")
    if not isinstance(actions, list) or not actions or not isinstance(user, Mapping) or not where:
        return Ignored("a click outside a message")
    message = payload.get("message")
    thread = _text(box, "thread_ts") or (_text(message, "thread_ts") if isinstance(message, Mapping) else "")
    return Clicked(
        team=us.team,
        channel=where,
        thread_ts=thread or None,
        message_ts=_text(box, "message_ts"),
        person=_text(user, "id"),
        person_team=_text(user, "team_id") or None,
        action=_text(actions[0], "action_id"),
        value=_text(actions[0], "value"),
    )


def _commanded(payload: Mapping[str, Any], us: Us) -> Commanded:
    return Commanded(
        team=us.team,
        channel=_text(payload, "channel_id"),
        person=_text(payload, "user_id"),
        command=_text(payload, "command"),
        text=words.plain(_text(payload, "text"), bot_user=us.bot_user, names={}),
        respond_url=_text(payload, "response_url"),
    )


def _for_us(payload: Mapping[str, Any], us: Us) -> bool:
    """Whether the delivery is for the workspace our token belongs to (org installs name no team)."""
    given = payload.get("authorizations")
    teams = {a.get("team_id") for a in given if isinstance(a, Mapping)} if isinstance(given, list) else set()
    return not teams or None in teams or us.team in teams


def _text(given: Any, key: str) -> str:
    value = given.get(key) if isinstance(given, Mapping) else None
    return value if isinstance(value, str) else ""


def _file(given: Mapping[str, Any]) -> str:
    return _text(given, "name") or _text(given, "title") or _text(given, "id") or "a file"
