"""What a workspace holds: people, channels, groups and messages, with Slack's own timestamps."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

Message = dict[str, Any]


@dataclass
class Channel:
    id: str
    name: str
    members: list[str]
    kind: str = "channel"  # channel | group | im | mpim
    ext_shared: bool = False
    archived: bool = False
    messages: list[Message] = field(default_factory=list)

    def message(self, ts: str) -> Message | None:
        return next((m for m in self.messages if m["ts"] == ts), None)

    def thread(self, ts: str) -> list[Message]:
        return [m for m in self.messages if ts in (m["ts"], m.get("thread_ts"))]

    def as_json(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "name": self.name,
            "is_channel": self.kind == "channel",
            "is_group": self.kind == "group",
            "is_im": self.kind == "im",
            "is_mpim": self.kind == "mpim",
            "is_private": self.kind != "channel",
            "is_archived": self.archived,
            "is_ext_shared": self.ext_shared,
            "is_pending_ext_shared": False,
            "is_member": True,
        }


class Workspace:
    """One team. bot_user is us."""

    def __init__(self, *, team: str, bot_user: str, bot_id: str, app_id: str) -> None:
        self.team = team
        self.bot_user = bot_user
        self.bot_id = bot_id
        self.app_id = app_id
        self.users: dict[str, dict[str, Any]] = {}
        self.channels: dict[str, Channel] = {}
        self.usergroups: dict[str, list[str]] = {}
        self._last_ts = 0

    def user(self, person: str, name: str, **facts: Any) -> dict[str, Any]:
        """facts: is_restricted, is_bot, deleted, is_stranger, team_id, … as in users.info."""
        self.users[person] = {
            "id": person,
            "team_id": self.team,
            "name": name,
            "real_name": name,
            "deleted": False,
            "is_bot": False,
            "is_restricted": False,
            "is_ultra_restricted": False,
            "profile": {"display_name": name, "real_name": name},
            **facts,
        }
        return self.users[person]

    def channel(
        self, channel: str, name: str = "", *, members: list[str] | None = None, **facts: Any
    ) -> Channel:
        found = [*(members if members is not None else self.users), self.bot_user]
        self.channels[channel] = Channel(
            channel, name or channel.lower(), list(dict.fromkeys(found)), **facts
        )
        return self.channels[channel]

    def dm(self, user: str) -> Channel:
        channel = "D" + user[1:]
        if channel not in self.channels:
            self.channel(channel, members=[user], kind="im")
        return self.channels[channel]

    def ts(self) -> str:
        """Now, and later than every ts before."""
        self._last_ts = max(self._last_ts + 1, time.time_ns() // 1000)
        return f"{self._last_ts // 1_000_000}.{self._last_ts % 1_000_000:06d}"

    def write(
        self, channel: str, *, user: str, text: str, thread_ts: str | None = None, **more: Any
    ) -> Message:
        message: Message = {
            "type": "message",
            "user": user,
            "ts": self.ts(),
            "text": text,
            "team": self.team,
            **more,
        }
        if thread_ts and thread_ts != message["ts"]:
            message["thread_ts"] = thread_ts
            root = self.channels[channel].message(thread_ts)
            if root is not None:
                root["thread_ts"] = thread_ts
                root["reply_count"] = root.get("reply_count", 0) + 1
                root["latest_reply"] = message["ts"]
        self.channels[channel].messages.append(message)
        return message
