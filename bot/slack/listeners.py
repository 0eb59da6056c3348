"""What we are registered for at Slack. Listeners acknowledge and hand over; they do no work of their own.

A message is acknowledged once it is stored, or after HOLD_S, whichever comes first: if the process dies
before, Slack delivers it again. Clicks and commands are acknowledged at once (Slack waits 3 s).
"""

from __future__ import annotations

import asyncio
import re
from typing import Any

import aiohttp
from slack_bolt.async_app import AsyncAck, AsyncApp, AsyncRespond
from slack_sdk.errors import SlackClientError

from bot import log
from bot.slack import blocks, memory_cards
from bot.slack.incoming import Clicked, Commanded, Deleted, Ignored, Said, Us, parse
from bot.slack.jobs import Jobs
from bot.slack.reception import Reception

HOLD_S = 2.0
EVENTS = ("app_mention", "message")  # manifest.yml subscribes to these; message stands for message.*
# What the action ids begin with.
ACTIONS = (blocks.APPROVE, blocks.DENY, blocks.STOP, blocks.MEMORIES, memory_cards.FORGET, memory_cards.SHARE)

logger = log.get("slack.listeners")


def register(app: AsyncApp, *, us: Us, reception: Reception, jobs: Jobs, command_name: str) -> None:
    """Register every listener on a Bolt app that was made with process_before_response."""

    async def on_event(body: dict[str, Any]) -> None:
        incoming = parse(body, us)
        match incoming:
            case Said():
                task = jobs.start(reception.said(incoming), name=f"message {incoming.ts}")
                done, _ = await asyncio.wait({task}, timeout=HOLD_S)
                if done:
                    task.result()  # what it raises keeps the acknowledgement back
            case Deleted():
                jobs.start(reception.deleted(incoming), name="deleted message")
            case Ignored(reason=reason):
                logger.debug("left alone", reason=reason)
            case _:
                logger.debug("left alone", reason="not an event")

    async def on_action(ack: AsyncAck, body: dict[str, Any]) -> None:
        await ack()
        incoming = parse(body, us)
        if isinstance(incoming, Clicked):
            jobs.start(reception.clicked(incoming), name=f"click {incoming.action}")

    async def on_command(ack: AsyncAck, body: dict[str, Any], respond: AsyncRespond) -> None:
        await ack()
        incoming = parse(body, us)
        if isinstance(incoming, Commanded):
            jobs.start(_answer(reception, incoming, respond), name="slash command")

    async def on_other(ack: AsyncAck) -> None:
        await ack()

    for event in EVENTS:
        app.event(event)(on_event)
    app.action(re.compile(rf"^({'|'.join(ACTIONS)})"))(on_action)
    app.command(command_name)(on_command)
    app.event(re.compile(r"."))(on_other)  # else Slack would deliver again what we do not know
    app.action(re.compile(r""))(on_other)


async def _answer(reception: Reception, commanded: Commanded, respond: AsyncRespond) -> None:
    message = await reception.commanded(commanded)
    try:
        await respond(
            text=message.text,
            blocks=list(message.blocks),
            response_type="ephemeral",
            unfurl_links=False,
            unfurl_media=False,
        )
    except (SlackClientError, aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
        logger.warning("slash command not answered", fault=type(error).__name__)
