"""Socket Mode of the fake: hello, envelopes, acknowledgements, redelivery, several connections, disconnects."""

from __future__ import annotations

import asyncio
import itertools
import json
from dataclasses import dataclass, field
from typing import Any

from aiohttp import WSMsgType, web


@dataclass
class Delivery:
    """One payload on its way. acked_after_s: None while nobody has acknowledged it."""

    kind: str
    payload: dict[str, Any]
    tries: int = 0
    acked_after_s: float | None = None
    answer: Any = None
    done: asyncio.Event = field(default_factory=asyncio.Event)


class Sockets:
    """Every payload goes to one of the connections, in turn; without one it is lost, as with Slack."""

    def __init__(self, app_id: str, *, ack_s: float) -> None:
        self.open: list[web.WebSocketResponse] = []
        self.deliveries: list[Delivery] = []
        self.hellos = 0
        self.refusing = False
        self._app_id = app_id
        self._ack_s = ack_s
        self._numbers = itertools.count(1)
        self._acks: dict[str, asyncio.Future[Any]] = {}
        self._turn = itertools.count()
        self._tasks: set[asyncio.Task[None]] = set()

    async def handle(self, request: web.Request) -> web.StreamResponse:
        if self.refusing:
            return web.Response(status=503)
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        self.hellos += 1
        info = {"app_id": self._app_id}
        await socket.send_json(
            {
                "type": "hello",
                "num_connections": len(self.open) + 1,
                "connection_info": info,
                "debug_info": {},
            }
        )
        self.open.append(socket)
        try:
            async for message in socket:
                if message.type == WSMsgType.TEXT:
                    self._acknowledged(json.loads(message.data))
        finally:
            self.open.remove(socket)
        return socket

    def _acknowledged(self, answer: dict[str, Any]) -> None:
        waiting = self._acks.get(answer.get("envelope_id", ""))
        if waiting is not None and not waiting.done():
            waiting.set_result(answer.get("payload"))

    def deliver(self, kind: str, payload: dict[str, Any]) -> Delivery:
        """Begin to deliver; Delivery.done is set when it is acknowledged or given up."""
        delivery = Delivery(kind, payload)
        self.deliveries.append(delivery)
        task = asyncio.create_task(self._deliver(delivery))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return delivery

    async def _deliver(self, delivery: Delivery) -> None:
        loop = asyncio.get_running_loop()
        began = loop.time()
        most = 4 if delivery.kind == "events_api" else 1  # clicks and commands are not sent again
        while delivery.tries < most and self.open:
            socket = self.open[next(self._turn) % len(self.open)]
            envelope_id = f"env-{next(self._numbers)}"
            waiting = self._acks[envelope_id] = loop.create_future()
            again = {"retry_attempt": delivery.tries, "retry_reason": "timeout" if delivery.tries else ""}
            envelope = {
                "envelope_id": envelope_id,
                "type": delivery.kind,
                "payload": delivery.payload,
                "accepts_response_payload": delivery.kind != "events_api",
                **(again if delivery.kind == "events_api" else {}),
            }
            delivery.tries += 1
            try:
                await socket.send_json(envelope)
                async with asyncio.timeout(self._ack_s):
                    while not waiting.done():
                        if socket.closed:
                            raise ConnectionResetError
                        await asyncio.wait({waiting}, timeout=0.05)
                delivery.answer, delivery.acked_after_s = waiting.result(), loop.time() - began
                break
            except (TimeoutError, ConnectionError):
                await asyncio.sleep(0.05)
            finally:
                self._acks.pop(envelope_id, None)
        delivery.done.set()

    async def disconnect(self, reason: str = "refresh_requested") -> None:
        """Ask every connection to come back on another one."""
        for socket in list(self.open):
            await socket.send_json({"type": "disconnect", "reason": reason})

    async def drop(self) -> None:
        """Cut every connection."""
        for socket in list(self.open):
            await socket.close()

    async def close(self) -> None:
        self.refusing = True
        for task in set(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.drop()
