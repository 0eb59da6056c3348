"""Long texts are redacted in another process; whatever happens to it, no secret comes through."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator

import pytest

from bot.redact import load_redactor
from bot.redact.worker import INLINE, RedactionWorker

OWN = "own/value+of=ours"
EXTRA = "corp: {keywords: [corp-], pattern: 'CORP-[0-9]{6}'}"
SHORT = f"password=hunter2 {OWN} CORP-123456\n"
LONG = SHORT + "an ordinary line \udcff\0 é 密\n" * (INLINE // 20)
GONE = "password=[redacted:password] [redacted:own-value] [redacted:corp]\n"


@pytest.fixture
async def worker() -> AsyncIterator[RedactionWorker]:
    made = RedactionWorker(load_redactor([OWN], EXTRA))
    yield made
    await made.aclose()


def process_of(worker: RedactionWorker) -> int:
    assert worker._process
    return worker._process.pid


async def test_a_short_text_starts_no_process(worker: RedactionWorker) -> None:
    assert (await worker.text(SHORT)).text == GONE
    assert worker._process is None


async def test_a_long_text_comes_back_as_from_the_redactor_itself(worker: RedactionWorker) -> None:
    assert await worker.text(LONG) == worker.redactor.text(LONG)
    first = process_of(worker)
    harmless = "an ordinary line \udcff\0 é 密\n" * INLINE
    assert await worker.text(harmless) == worker.redactor.text(harmless)
    assert process_of(worker) == first


async def test_many_at_once_get_each_its_own(worker: RedactionWorker) -> None:
    texts = [f"{n} {LONG}" for n in range(8)]
    found = await asyncio.gather(*(worker.text(text) for text in texts))
    assert [one.text.split(" ", 1)[0] for one in found] == [str(n) for n in range(8)]
    assert all(GONE in one.text for one in found)


async def test_a_killed_process_is_replaced(worker: RedactionWorker) -> None:
    await worker.text(LONG)
    first = process_of(worker)
    os.kill(first, signal.SIGKILL)
    assert GONE in (await worker.text(LONG)).text
    assert process_of(worker) != first


async def test_a_cancelled_text_does_not_answer_the_next(worker: RedactionWorker) -> None:
    await worker.text(LONG)
    task = asyncio.create_task(worker.text("first " + LONG * 20))
    while worker._turn.locked() is False:
        await asyncio.sleep(0)
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (await worker.text("second " + LONG)).text.startswith("second " + GONE)


async def test_without_a_process_the_text_is_redacted_all_the_same(
    worker: RedactionWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    assert GONE in (await worker.text(LONG)).text


async def test_a_process_that_never_answers_is_given_up() -> None:
    worker = RedactionWorker(load_redactor([OWN], EXTRA), limit_s=0.0)
    assert GONE in (await worker.text(LONG)).text
    assert worker._process is None


async def test_closing_ends_the_process(worker: RedactionWorker) -> None:
    await worker.text(LONG)
    pid = process_of(worker)
    await worker.aclose()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


async def test_the_process_ends_with_the_one_that_started_it() -> None:
    code = (
        "import asyncio, os\n"
        "from bot.redact import load_redactor\n"
        "from bot.redact.worker import RedactionWorker\n"
        "async def main():\n"
        "    worker = RedactionWorker(load_redactor())\n"
        "    await worker.text('x ' * 50_000)\n"
        "    print(worker._process.pid, flush=True)\n"
        "    os._exit(1)\n"
        "asyncio.run(main())\n"
    )
    parent = await asyncio.create_subprocess_exec(sys.executable, "-c", code, stdout=asyncio.subprocess.PIPE)
    assert parent.stdout
    pid = int(await parent.stdout.readline())
    await parent.wait()
    async with asyncio.timeout(20):
        while _alive(pid):
            await asyncio.sleep(0.02)


def _alive(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except FileNotFoundError:
        return False
