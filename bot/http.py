"""Health over HTTP: /healthz says the process lives, /readyz that Postgres and Slack can be reached."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager

from aiohttp import web

from bot.errors import SettingsError

Ready = Callable[[], Awaitable[dict[str, bool]]]  # part -> can it be reached


@asynccontextmanager
async def health(port: int, ready: Ready) -> AsyncGenerator[None]:
    """Serve on all interfaces while the block is open. Raises SettingsError when the port is taken."""

    async def healthz(_request: web.Request) -> web.Response:
        return web.json_response({"alive": True})

    async def readyz(_request: web.Request) -> web.Response:
        parts = await ready()
        return web.json_response(parts, status=200 if all(parts.values()) else 503)

    app = web.Application()
    app.add_routes([web.get("/healthz", healthz), web.get("/readyz", readyz)])
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    try:
        try:
            await web.TCPSite(runner, port=port).start()
        except OSError as error:
            raise SettingsError(
                f"OPSTHREAD_HTTP_PORT: port {port} cannot be used ({error.strerror})"
            ) from None
        yield
    finally:
        await runner.cleanup()
