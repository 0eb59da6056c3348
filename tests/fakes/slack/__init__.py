"""A Slack to test against: Web API over HTTP, Socket Mode over a websocket, people who write and click.

It runs in the test's process while the bot runs anywhere. Every call is checked (`violations`), every
message kept. Faults are injected with `fail`. Nothing leaves loopback.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from aiohttp import web

from tests.fakes.slack import api, rules
from tests.fakes.slack.sockets import Delivery, Sockets
from tests.fakes.slack.workspace import Channel, Message, Workspace

ACK_S = 3.0  # Slack waits so long


@dataclass
class Call:
    """One Web API call as it came. answer: what was sent back, None: nothing was."""

    method: str
    args: dict[str, Any]
    at: float
    answer: dict[str, Any] | None = None


@dataclass
class Fault:
    """What happens to the next `times` calls of a method ('*': any).

    error: `ok: false` · status: that HTTP status (429 with retry_after_s) · lost: it is done, but the
    answer never arrives · slow_s: it is done late · late_s: it is done at once and answered late.
    """

    method: str
    times: int = 1
    error: str | None = None
    status: int | None = None
    retry_after_s: int | None = None
    lost: bool = False
    slow_s: float = 0.0
    late_s: float = 0.0


class FakeSlack:
    """`async with FakeSlack() as slack:`; alice, bob and carol are there, and channel C01OPS with all of them."""

    def __init__(
        self, *, shared: Path | None = rules.SHARED, echo: bool = True, ack_s: float = ACK_S
    ) -> None:
        self.shared = shared if shared is not None and shared.is_dir() else None
        self.bot_token, self.app_token = "xoxb-fake-bot", "xapp-fake-app"
        self.workspace = Workspace(team="T01TEAM", bot_user="U0BOT", bot_id="B0BOT", app_id="A0APP")
        self.workspace.user("U0BOT", "ops", is_bot=True)
        for person, name in (("U01ALICE", "alice"), ("U02BOB", "bob"), ("U03CAROL", "carol")):
            self.workspace.user(person, name)
        self.workspace.channel("C01OPS", "ops")
        self.sockets = Sockets("A0APP", ack_s=ack_s)
        self.calls: list[Call] = []
        self.violations: list[str] = []
        self.ephemeral: list[dict[str, Any]] = []
        self.responses: list[dict[str, Any]] = []  # to response_urls
        self.down = False  # every call answers 503
        self.port = 0
        self._echo = echo
        self._faults: list[Fault] = []
        self._numbers = itertools.count(1)
        self._runner: web.AppRunner | None = None

    # ---- life ----

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def start(self) -> None:
        app = web.Application(client_max_size=4 * 2**20)
        app.router.add_route("*", "/api/{method}", self._api)
        app.router.add_get("/link", self.sockets.handle)
        app.router.add_post("/respond/{id}", self._respond)
        self._runner = web.AppRunner(app, shutdown_timeout=1.0)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self.port)
        await site.start()
        self.port = self._runner.addresses[0][1]

    async def stop(self) -> None:
        await self.sockets.close()
        if self._runner is not None:
            await self._runner.cleanup()

    @property
    def api_url(self) -> str:
        return f"http://127.0.0.1:{self.port}/api/"

    @property
    def env(self) -> dict[str, str]:
        """What a bot process needs to find this Slack."""
        return {
            "SLACK_BOT_TOKEN": self.bot_token,
            "SLACK_APP_TOKEN": self.app_token,
            "SLACK_API_URL": self.api_url,
        }

    # ---- the workspace ----

    def user(self, person: str, name: str, **facts: Any) -> None:
        """Add a person and put them into C01OPS; facts as in users.info."""
        self.workspace.user(person, name, **facts)
        self.workspace.channels["C01OPS"].members.append(person)

    def channel(self, channel: str, name: str = "", **facts: Any) -> Channel:
        """facts: members, kind, ext_shared, archived."""
        return self.workspace.channel(channel, name, **facts)

    def usergroup(self, group: str, users: list[str]) -> None:
        self.workspace.usergroups[group] = users

    # ---- what people do: texts are as Slack sends them (`&lt;` for a typed `<`) ----

    async def mention(
        self, user: str, text: str, *, channel: str = "C01OPS", thread_ts: str | None = None, **more: Any
    ) -> Message:
        """`@ops text`: delivered as app_mention and as its twin message event. Answers the message."""
        message = self.workspace.write(
            channel,
            user=user,
            text=f"<@{self.workspace.bot_user}> {text}".rstrip(),
            thread_ts=thread_ts,
            **more,
        )
        twins = [self.deliver_message(message, channel, kind) for kind in ("app_mention", "message")]
        await self._delivered(*twins)
        return message

    async def reply(
        self, user: str, text: str, *, thread_ts: str, channel: str = "C01OPS", **more: Any
    ) -> Message:
        """A reply in a thread, without a mention unless the text has one. more: subtype, files, …"""
        return await self.say(user, text, channel=channel, thread_ts=thread_ts, **more)

    async def say(
        self, user: str, text: str, *, channel: str = "C01OPS", thread_ts: str | None = None, **more: Any
    ) -> Message:
        """Anything a person writes, delivered as a message event."""
        message = self.workspace.write(channel, user=user, text=text, thread_ts=thread_ts, **more)
        await self._delivered(self.deliver_message(message, channel, "message"))
        return message

    async def dm(self, user: str, text: str, *, thread_ts: str | None = None, **more: Any) -> Message:
        """A direct message to the bot. The channel is D + the rest of the user's id."""
        return await self.say(user, text, channel=self.workspace.dm(user).id, thread_ts=thread_ts, **more)

    async def click(self, message: Message, action: str, user: str, *, value: str | None = None) -> Delivery:
        """Press the button of a message whose action_id begins with `action`. value: press a forged one."""
        channel = next(c.id for c in self.workspace.channels.values() if c.message(message["ts"]) is not None)
        element = next(e for e in buttons(message) if e["action_id"].startswith(action))
        payload = {
            "type": "block_actions",
            "user": {
                "id": user,
                "username": user.lower(),
                "name": user.lower(),
                "team_id": self.workspace.team,
            },
            "api_app_id": self.workspace.app_id,
            "token": "verification",
            "container": {
                "type": "message",
                "message_ts": message["ts"],
                "channel_id": channel,
                "is_ephemeral": False,
                "thread_ts": message.get("thread_ts"),
            },
            "trigger_id": f"1.2.{next(self._numbers)}",
            "team": {"id": self.workspace.team, "domain": "acme"},
            "enterprise": None,
            "is_enterprise_install": False,
            "channel": {"id": channel, "name": self.workspace.channels[channel].name},
            "message": {k: v for k, v in message.items() if k not in ("metadata", "edits")},
            "state": {"values": {}},
            "response_url": self._respond_url(),
            "actions": [
                {
                    **element,
                    "value": value or element.get("value", ""),
                    "block_id": "b1",
                    "action_ts": self.workspace.ts(),
                }
            ],
        }
        return await self._acked(self.sockets.deliver("interactive", payload))

    async def slash(
        self, user: str, text: str, *, channel: str = "C01OPS", command: str = "/ops"
    ) -> Delivery:
        """A slash command; its answer comes to `responses`."""
        payload = {
            "token": "verification",
            "team_id": self.workspace.team,
            "team_domain": "acme",
            "channel_id": channel,
            "channel_name": self.workspace.channels[channel].name,
            "user_id": user,
            "user_name": user.lower(),
            "command": command,
            "text": text,
            "api_app_id": self.workspace.app_id,
            "is_enterprise_install": "false",
            "response_url": self._respond_url(),
            "trigger_id": f"1.2.{next(self._numbers)}",
        }
        return await self._acked(self.sockets.deliver("slash_commands", payload))

    def deliver_message(
        self,
        message: Message,
        channel: str,
        kind: str = "message",
        *,
        event_id: str | None = None,
        **body: Any,
    ) -> Delivery:
        """Deliver an event of a message, also again (give the same event_id) or late. body: overrides."""
        found = self.workspace.channels[channel]
        event = {k: v for k, v in message.items() if k not in ("metadata", "edits", "reactions")}
        event |= {"type": kind, "channel": channel, "event_ts": message["ts"]}
        if kind == "message":
            event["channel_type"] = found.kind
        return self.deliver_event(event, event_id=event_id, is_ext_shared_channel=found.ext_shared, **body)

    def deliver_event(self, event: dict[str, Any], *, event_id: str | None = None, **body: Any) -> Delivery:
        team, bot = self.workspace.team, self.workspace.bot_user
        payload = {
            "token": "verification",
            "team_id": team,
            "api_app_id": self.workspace.app_id,
            "event": event,
            "type": "event_callback",
            "event_id": event_id or f"Ev{next(self._numbers):08d}",
            "event_time": int(time.time()),
            "authorizations": [
                {
                    "enterprise_id": None,
                    "team_id": team,
                    "user_id": bot,
                    "is_bot": True,
                    "is_enterprise_install": False,
                }
            ],
            "is_ext_shared_channel": False,
            **body,
        }
        return self.sockets.deliver("events_api", {k: v for k, v in payload.items() if v is not None})

    # ---- looking ----

    def thread(self, channel: str, ts: str) -> list[Message]:
        return self.workspace.channels[channel].thread(ts)

    def posts(self, channel: str, ts: str) -> list[Message]:
        """What the bot has posted in a thread."""
        return [m for m in self.thread(channel, ts) if m["user"] == self.workspace.bot_user]

    def called(self, method: str) -> list[Call]:
        return [call for call in self.calls if call.method == method]

    async def until(self, condition: Callable[[], Any], *, timeout: float = 15.0, what: str = "") -> Any:
        """Wait until the condition holds; answers its value."""
        deadline = asyncio.get_running_loop().time() + timeout
        while not (value := condition()):
            if asyncio.get_running_loop().time() > deadline:
                raise AssertionError(
                    f"not within {timeout} s: {what or condition}; violations: {self.violations}"
                )
            await asyncio.sleep(0.02)
        return value

    async def connected(self, count: int = 1) -> None:
        """Wait for so many sockets."""
        await self.until(lambda: len(self.sockets.open) >= count, what=f"{count} sockets")

    # ---- faults ----

    def fail(self, method: str, **fault: Any) -> Fault:
        """See Fault. Faults of a method are used up in the order they were given."""
        made = Fault(method, **fault)
        self._faults.append(made)
        return made

    def _fault(self, method: str) -> Fault | None:
        for fault in self._faults:
            if fault.method in (method, "*") and fault.times > 0:
                fault.times -= 1
                return fault
        return None

    # ---- HTTP ----

    async def _api(self, request: web.Request) -> web.StreamResponse:
        method = request.match_info["method"]
        args = await _arguments(request)
        token = request.headers.get("Authorization", "").removeprefix("Bearer ") or str(args.get("token", ""))
        call = Call(method, {k: v for k, v in args.items() if k != "token"}, time.time())
        self.calls.append(call)
        fault = self._fault(method)
        if self.down:
            return web.Response(status=503)
        if fault is not None and (fault.status or fault.error):
            return _failed(fault)
        if fault is not None and fault.slow_s:
            await asyncio.sleep(fault.slow_s)
        call.answer = self._answer(method, call.args, token)
        if fault is not None and fault.late_s:
            await asyncio.sleep(fault.late_s)
        if fault is not None and fault.lost and request.transport is not None:
            request.transport.close()
        return web.json_response(call.answer)

    def _answer(self, method: str, args: dict[str, Any], token: str) -> dict[str, Any]:
        wanted = self.app_token if method in rules.METHODS and rules.METHODS[method].app else self.bot_token
        if token != wanted:
            return {"ok": False, "error": "invalid_auth" if token else "not_authed"}
        faults = rules.faults(method, args, self.shared)
        if faults:
            self.violations += faults
            long = any("msg_blocks_too_long" in fault for fault in faults)
            return {
                "ok": False,
                "error": "msg_blocks_too_long" if long else "invalid_arguments",
                "detail": faults,
            }
        if method == "apps.connections.open":
            return {"ok": True, "url": f"ws://127.0.0.1:{self.port}/link?ticket={next(self._numbers)}"}
        try:
            answer = {"ok": True, **api.ANSWERS[method](self.workspace, args)}
        except api.Refusal as refusal:
            return {"ok": False, "error": str(refusal)}
        if method == "chat.postEphemeral":
            self.ephemeral.append(args)
        if self._echo and method == "chat.postMessage":
            message = self.workspace.channels[args["channel"]].message(answer["ts"])
            if message is not None and self.sockets.open:
                self.deliver_message(message, args["channel"])  # Slack tells a bot of its own messages too
        return answer

    async def _respond(self, request: web.Request) -> web.Response:
        self.responses.append(await request.json())
        return web.Response(text="ok")

    def _respond_url(self) -> str:
        return f"http://127.0.0.1:{self.port}/respond/{next(self._numbers)}"

    async def _delivered(self, *deliveries: Delivery) -> None:
        """Events are acknowledged or lost; nobody waits for what follows."""
        await asyncio.gather(*(delivery.done.wait() for delivery in deliveries))

    async def _acked(self, delivery: Delivery) -> Delivery:
        await delivery.done.wait()
        if delivery.acked_after_s is None:
            self.violations.append(f"{delivery.kind} was not acknowledged in time")
        return delivery


def buttons(message: Message) -> list[dict[str, Any]]:
    """Every button of a message: of its actions blocks and beside its sections."""
    found: list[dict[str, Any]] = []
    for block in message.get("blocks") or []:
        found += [e for e in block.get("elements", []) if e.get("type") == "button"]
        if (block.get("accessory") or {}).get("type") == "button":
            found.append(block["accessory"])
    return found


def words(message: Message) -> str:
    """All that a reader sees of a message's blocks, else its text."""
    return "\n".join(rules.texts(message["blocks"])) if message.get("blocks") else str(message["text"])


async def _arguments(request: web.Request) -> dict[str, Any]:
    args: dict[str, Any] = dict(request.query)
    if request.content_type == "application/json":
        args |= await request.json()
    else:
        args |= {key: value for key, value in (await request.post()).items() if isinstance(value, str)}
    for key in ("blocks", "metadata"):
        if isinstance(args.get(key), str):
            args[key] = json.loads(args[key])
    return args


def _failed(fault: Fault) -> web.Response:
    if fault.status is None:
        return web.json_response({"ok": False, "error": fault.error})
    headers = {"Retry-After": str(fault.retry_after_s)} if fault.retry_after_s is not None else {}
    error = "ratelimited" if fault.status == 429 else "internal_error"
    return web.json_response(
        {"ok": False, "error": fault.error or error}, status=fault.status, headers=headers
    )
