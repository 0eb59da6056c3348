"""`serve`: the Slack bot, until SIGTERM or Ctrl-C ends it in order."""

from __future__ import annotations

import asyncio
import signal
from contextlib import AsyncExitStack

import typer

from bot import app as root
from bot import log, settings
from bot.http import health

logger = log.get(__name__)


def register(app: typer.Typer) -> None:
    """Add the command."""

    @app.command()
    def serve() -> None:
        """Run the Slack bot (Socket Mode)."""
        asyncio.run(_serve())


async def _serve() -> None:
    values = settings.load()
    log.configure(values.log_format, values.log_level, values.redactor())
    ended = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, ended.set)
    async with AsyncExitStack() as stack:
        opening = asyncio.create_task(stack.enter_async_context(root.slack(values)))
        wait = asyncio.create_task(ended.wait())
        await asyncio.wait({opening, wait}, return_when=asyncio.FIRST_COMPLETED)
        if not opening.done():  # told to stop while Slack or the database could not be reached yet
            opening.cancel()
            await asyncio.gather(opening, return_exceptions=True)
            return
        served = opening.result()
        if values.http_port is not None:
            await stack.enter_async_context(health(values.http_port, served.ready))
        logger.info("serving", model=served.app.model_name)
        work = asyncio.create_task(served.app.desk.serve())
        await asyncio.wait({work, wait}, return_when=asyncio.FIRST_COMPLETED)
        wait.cancel()
        if work.done():
            work.result()
        logger.info("stopping: turns at work are finished or handed over")
        await served.stop(work)
