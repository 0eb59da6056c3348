"""Asking at a terminal: lines, yes or no, Ctrl-C and expiry, over real pipes and a real pty."""

from __future__ import annotations

import asyncio
import io
import os
import pty
import signal
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from bot.terminal.prompt import Choice, Interrupts, Lines, ask_approval, chat, read_choice
from bot.terminal.screen import make_console
from tests.fakes import turn_events as make


class Pipe:
    def __init__(self) -> None:
        self.reader, self._writer = os.pipe()
        self._open = True

    def write(self, text: bytes) -> None:
        os.write(self._writer, text)

    def end(self) -> None:
        if self._open:
            os.close(self._writer)
            self._open = False


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    made = Pipe()
    yield made
    made.end()
    os.close(made.reader)


async def until(text: str, *, out: io.StringIO) -> None:
    async with asyncio.timeout(5):
        while text not in out.getvalue():
            await asyncio.sleep(0.005)


async def test_lines_come_one_by_one_and_the_end_is_none(pipe: Pipe) -> None:
    lines = Lines(pipe.reader)
    pipe.write("第一\r\nsecond\nlast".encode())
    pipe.end()
    assert [await lines.read() for _ in range(4)] == ["第一", "second", "last", None]


async def test_a_plain_file_and_dev_null_can_be_read_too(tmp_path: Path) -> None:
    file = tmp_path / "questions"
    file.write_text("a\nb\n")
    fds = [os.open(file, os.O_RDONLY), os.open(os.devnull, os.O_RDONLY)]
    assert [await Lines(fds[0]).read(), await Lines(fds[1]).read()] == ["a", None]
    for fd in fds:
        os.close(fd)


async def test_a_cancelled_read_loses_nothing(pipe: Pipe) -> None:
    lines = Lines(pipe.reader)
    pipe.write(b"hal")
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.02):
            await lines.read()
    pipe.write(b"f\n")
    assert await lines.read() == "half"


@pytest.mark.parametrize(
    ("typed", "choice"),
    [
        ("y", Choice.APPROVE),
        (" YES ", Choice.APPROVE),
        ("", Choice.DENY),
        ("no", Choice.DENY),
        ("maybe", None),
    ],
)
def test_only_a_clear_yes_approves(typed: str, choice: Choice | None) -> None:
    assert read_choice(typed) is choice


async def asked_with(pipe: Pipe, *answers: bytes) -> tuple[Choice, str]:
    """Each answer is typed after its question was printed."""
    out = io.StringIO()
    with Interrupts() as interrupts:
        task = asyncio.create_task(
            ask_approval(
                make.asked(),
                Lines(pipe.reader),
                console=make_console(out),
                interrupts=interrupts,
                now=make.NOW,
            )
        )
        await until("Approve? [y/N]", out=out)
        for answer in answers:
            pipe.write(answer)
        choice = await task
    return choice, out.getvalue()


async def test_the_exact_command_stands_above_the_question(pipe: Pipe) -> None:
    choice, output = await asked_with(pipe, b"y\n")
    assert choice is Choice.APPROVE
    assert output.startswith("On app-2, exactly:\n    sudo -n systemctl restart app-workers\nApprove? [y/N]")


async def test_an_unclear_word_is_asked_again(pipe: Pipe) -> None:
    choice, output = await asked_with(pipe, b"go ahead\n", b"n\n")
    assert choice is Choice.DENY
    assert "Please answer y or n." in output


async def test_what_was_typed_before_the_question_is_no_answer() -> None:
    leader, follower = pty.openpty()
    out = io.StringIO()
    lines = Lines(follower)
    os.write(leader, b"y\n")
    with Interrupts() as interrupts:
        asking = ask_approval(
            make.asked(), lines, console=make_console(out), interrupts=interrupts, now=make.NOW
        )
        task = asyncio.create_task(asking)
        await until("Approve? [y/N]", out=out)
        os.write(leader, b"n\n")
        assert await task is Choice.DENY
    os.close(leader)
    os.close(follower)


async def test_an_expired_question_ends_by_itself(pipe: Pipe) -> None:
    out = io.StringIO()
    with Interrupts() as interrupts:
        choice = await ask_approval(
            make.asked(),
            Lines(pipe.reader),
            console=make_console(out),
            interrupts=interrupts,
            now=make.EXPIRY - timedelta(milliseconds=20),
        )
    assert choice is Choice.OPEN
    assert "Approval 5 expired before it was answered." in out.getvalue()
    pipe.write(b"next\n")
    assert await Lines(pipe.reader).read() == "next"


async def test_ctrl_c_leaves_an_approval_open_and_says_how_to_answer(pipe: Pipe) -> None:
    out = io.StringIO()
    with Interrupts() as interrupts:
        task = asyncio.create_task(
            ask_approval(
                make.asked(),
                Lines(pipe.reader),
                console=make_console(out),
                interrupts=interrupts,
                now=make.NOW,
            )
        )
        await until("Approve? [y/N]", out=out)
        signal.raise_signal(signal.SIGINT)
        assert await task is Choice.OPEN
    assert "Left open. To answer: opsthread approve 5   or: opsthread deny 5" in out.getvalue()


async def test_the_innermost_question_gets_ctrl_c() -> None:
    with Interrupts() as interrupts:
        outer = asyncio.create_task(interrupts.wait())
        await asyncio.sleep(0)
        inner = asyncio.create_task(interrupts.wait())
        await asyncio.sleep(0)
        interrupts.press()
        await inner
        assert not outer.done()
        interrupts.press()
        await outer


async def test_a_chat_runs_a_turn_a_line_until_the_input_ends(pipe: Pipe) -> None:
    heard: list[str] = []

    async def turn(text: str) -> None:
        heard.append(text)

    async def stop() -> None:
        raise AssertionError("nobody stopped")

    pipe.write(b"one\n\n  \ntwo\n")
    pipe.end()
    with Interrupts() as interrupts:
        console = make_console(io.StringIO())
        await chat(Lines(pipe.reader), console=console, interrupts=interrupts, turn=turn, stop=stop)
    assert heard == ["one", "two"]


async def test_ctrl_c_stops_the_turn_in_order_and_the_chat_goes_on(pipe: Pipe) -> None:
    running, stopped = asyncio.Event(), asyncio.Event()
    ended: list[str] = []

    async def turn(text: str) -> None:
        running.set()
        await stopped.wait()
        ended.append(text)

    async def stop() -> None:
        stopped.set()

    with Interrupts() as interrupts:
        console = make_console(io.StringIO())
        talk = asyncio.create_task(
            chat(Lines(pipe.reader), console=console, interrupts=interrupts, turn=turn, stop=stop)
        )
        pipe.write(b"long\nshort\n")
        await running.wait()
        await asyncio.sleep(0)
        signal.raise_signal(signal.SIGINT)
        pipe.end()
        await asyncio.wait_for(talk, 5)
    assert ended == ["long", "short"]


async def test_a_second_ctrl_c_leaves_and_cancels_the_turn(pipe: Pipe) -> None:
    running, stops, cancelled = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def turn(text: str) -> None:
        running.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    async def stop() -> None:
        stops.set()

    with Interrupts() as interrupts:
        console = make_console(io.StringIO())
        talk = asyncio.create_task(
            chat(Lines(pipe.reader), console=console, interrupts=interrupts, turn=turn, stop=stop)
        )
        pipe.write(b"long\n")
        await running.wait()
        interrupts.press()
        await stops.wait()
        interrupts.press()
        await asyncio.wait_for(talk, 5)
    assert cancelled.is_set()


async def test_ctrl_c_at_the_prompt_leaves(pipe: Pipe) -> None:
    out = io.StringIO()

    async def never(*_: str) -> None:
        raise AssertionError("no turn was asked for")

    with Interrupts() as interrupts:
        talk = asyncio.create_task(
            chat(
                Lines(pipe.reader),
                console=make_console(out),
                interrupts=interrupts,
                turn=never,
                stop=never,
            )
        )
        await until("> ", out=out)
        signal.raise_signal(signal.SIGINT)
        await asyncio.wait_for(talk, 5)
