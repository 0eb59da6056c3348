"""What `demo`, `chat` and `ask` do: one conversation over the whole of the bot."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from rich.console import Console

from bot import app as root
from bot import log
from bot.errors import Refused
from bot.events import ApprovalAsked, Screen
from bot.settings import Settings
from bot.terminal.conversation import Asker, Conversation
from bot.terminal.json_lines import JsonScreen, dumps, memories_record
from bot.terminal.prompt import Choice, Interrupts, Lines, ask_approval
from bot.terminal.prompt import chat as chat_lines
from bot.terminal.screen import TerminalScreen, make_console
from bot.terminal.wording import memory_lines, session_hint
from bot.turns.desk import LONGEST_MESSAGE
from bot.turns.memories import Told
from storage.records import LOCAL_TEAM, Session, Turn, TurnState

QUESTIONS = (
    "is the disk filling up?",
    "which versions of python and openssh run here?",
    "内存够用吗？",
)


@dataclass(slots=True)
class _Terminal:
    """What one command talks through."""

    console: Console
    conversation: Conversation
    app: root.App
    interrupts: Interrupts
    as_json: bool = False

    def tell(self, told: Told) -> None:
        """Print the answer to a word about memory."""
        if self.as_json:
            print(dumps(memories_record(told)), flush=True)
        else:
            self.console.print("\n".join(memory_lines(told)), soft_wrap=True, markup=False, highlight=False)


async def demo(values: Settings, question: str) -> int:
    """Talk about this machine. Returns the exit status, as the others do."""
    piped = not sys.stdin.isatty()
    if not question and piped:
        question = (await asyncio.to_thread(sys.stdin.read, LONGEST_MESSAGE + 1)).strip()
    async with _open(values, demo=True, user="local") as terminal:
        _greet(terminal)
        if question:
            return await _one(terminal, question)
        if piped:
            print(f'opsthread: nothing was asked; try: echo "{QUESTIONS[0]}" | make demo', file=sys.stderr)
            return 0
        return await _talk(terminal)


async def chat(values: Settings, session: int | None, user: str) -> int:
    """Lines from the terminal until it ends."""
    async with _open(values, user=user, hint=False) as terminal:
        if session is not None:
            await terminal.conversation.go_on_with(session)
        _greet(terminal)
        return await _talk(terminal)


async def ask(values: Settings, text: str, session: int | None, *, user: str, as_json: bool) -> int:
    """One question."""
    async with _open(values, user=user, as_json=as_json) as terminal:
        if session is not None:
            await terminal.conversation.go_on_with(session)
        return await _one(terminal, text)


async def _one(terminal: _Terminal, text: str) -> int:
    """One turn; Ctrl-C stops it in order. Exit status 0 also when an approval was left open."""
    conversation = terminal.conversation
    heard = await conversation.word(text)
    if isinstance(heard, Told):
        terminal.tell(heard)
        return 0
    with terminal.interrupts:
        turn = asyncio.create_task(conversation.say(heard))
        pressed = asyncio.create_task(terminal.interrupts.wait())
        await asyncio.wait({turn, pressed}, return_when=asyncio.FIRST_COMPLETED)
        if not turn.done():
            await conversation.stop()
        pressed.cancel()
        state = await turn
    match state:
        case TurnState.FAILED:
            return 1
        case TurnState.STOPPED:
            return 130
        case _:
            return 0


async def _talk(terminal: _Terminal) -> int:
    async def turn(line: str) -> None:
        try:
            heard = await terminal.conversation.word(line)
            if isinstance(heard, Told):
                terminal.tell(heard)
            else:
                await terminal.conversation.say(heard)
        except Refused as error:
            terminal.console.print(str(error), soft_wrap=True, markup=False)

    with terminal.interrupts:
        await chat_lines(
            Lines(sys.stdin.fileno()),
            console=terminal.console,
            interrupts=terminal.interrupts,
            turn=turn,
            stop=terminal.conversation.stop,
        )
    if terminal.conversation.session is not None:
        terminal.console.print(session_hint(terminal.conversation.session.id), soft_wrap=True, markup=False)
    return 0


@asynccontextmanager
async def _open(
    values: Settings, *, user: str, demo: bool = False, as_json: bool = False, hint: bool = True
) -> AsyncGenerator[_Terminal]:
    """Everything a terminal needs, built and taken down. hint: say after each answer how to go on."""
    log.configure(
        values.log_format, "error" if values.log_level == "info" else values.log_level, values.redactor()
    )
    console = make_console(sys.stdout)
    zone = ZoneInfo(values.timezone)
    held: list[Conversation] = []

    def screen(session: Session, turn: Turn) -> Screen:
        mirror = root.mirror(values, session, turn)
        if as_json:
            return JsonScreen(sys.stdout, mirror=mirror)
        told = held[0].approval_asked
        return TerminalScreen(console, zone=zone, on_approval=told, hint=hint, mirror=mirror)

    if not as_json:
        print("opsthread: starting", file=sys.stderr)
    interrupts = Interrupts()
    async with root.terminal(values, screen=screen, demo=demo) as app:
        conversation = Conversation(
            store=app.store,
            desk=app.desk,
            approvals=app.approvals,
            memories=app.memories,
            team=LOCAL_TEAM,
            account=root.account(),
            owner=user,
        )
        held.append(conversation)
        if sys.stdin.isatty() and sys.stdout.isatty() and not as_json:
            conversation.ask = _asker(console, interrupts)
        yield _Terminal(console, conversation, app, interrupts, as_json)


def _asker(console: Console, interrupts: Interrupts) -> Asker:
    lines = Lines(sys.stdin.fileno())

    async def ask(event: ApprovalAsked) -> Choice:
        return await ask_approval(event, lines, console=console, interrupts=interrupts, now=datetime.now(UTC))

    return ask


def _greet(terminal: _Terminal) -> None:
    app = terminal.app
    names = [host.name for host in app.inventory.current.for_team(LOCAL_TEAM).hosts]
    lines = [f"opsthread · hosts: {', '.join(names[:5])} · model: {app.model_name}"]
    if app.practice.model:
        lines.append(
            "The practice model follows rules and knows disk, memory, load, services, versions and logs."
        )
    if sys.stdin.isatty():
        lines.append(f"Try: {' · '.join(QUESTIONS)}   (Ctrl-C stops a turn, Ctrl-D leaves)")
    for line in lines:
        terminal.console.print(line, soft_wrap=True, markup=False)
