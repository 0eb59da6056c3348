"""A person at a terminal with nothing but Python: demo, ask, continue, approve, kill."""

from __future__ import annotations

import asyncio
import re
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.acceptance.processes import run, started
from tests.fakes.following import FOLLOW, following
from tests.fakes.model import FakeModel, call, calls, say


@pytest.fixture
async def home() -> AsyncIterator[dict[str, str]]:
    """A data folder of its own with an embedded Postgres; its server is stopped with its last user."""
    with tempfile.TemporaryDirectory(prefix="opsthread-acc-", ignore_cleanup_errors=True) as folder:
        yield {"OPSTHREAD_DATA_DIR": folder}


async def test_the_demo_answers_from_real_output_and_the_session_goes_on_in_a_new_process(
    home: dict[str, str],
) -> None:
    question = "is the disk filling up, and which versions of python and openssh run here?"
    status, demo = await run("demo", "--ask", question, env=home, afresh=True)
    text = demo.text()
    assert status == 0, text
    assert "'df'" in text
    assert "exit 0" in text
    assert re.search(r"Python 3\.\d+\.\d+", text), text
    assert re.search(r"Finding|Conclusion", text), text
    found = re.search(r"ask --session (\d+)", text)
    assert found, text
    status, more = await run("ask", "continue", "--session", found[1], "--json", env=home, afresh=True)
    assert status == 0, more.text()
    assert more.last("answer")["session"] == int(found[1])
    status, shown = await run("sessions", "show", found[1], "--json", env=home)
    assert question in shown.text()
    assert "continue" in shown.text()


async def test_the_demo_speaks_chinese_too(home: dict[str, str]) -> None:
    status, demo = await run("demo", "--ask", "磁盘快满了吗？python 和 openssh 是什么版本？", env=home)
    assert status == 0, demo.text()
    assert re.search(r"Python 3\.\d+\.\d+", demo.text())
    assert re.search(r"磁盘|文件系统", demo.text().split("'df'")[-1])


async def test_a_question_from_a_pipe_is_answered(home: dict[str, str]) -> None:
    status, demo = await run("demo", env=home, stdin="is memory short?\n")
    assert status == 0, demo.text()
    assert "'free'" in demo.text()
    status, empty = await run("demo", env=home, stdin="\n")
    assert status == 0
    assert "nothing was asked; try: echo" in empty.text()


async def test_an_approval_that_nobody_is_there_to_give_is_left_open_and_answered_later(
    home: dict[str, str], tmp_path: Path
) -> None:
    target = tmp_path / "made"
    async with FakeModel(
        [calls([call("run_command", hosts=["this-machine"], command=f"touch {target}")])]
    ) as model:
        env = {**home, "OPENAI_BASE_URL": model.base_url, "OPENAI_API_KEY": "made-up"}
        status, asked = await run("ask", "make the file", "--json", env=env)
        assert status == 0
        approval = asked.last("approval")
        assert approval["run"] == f"'touch' {target}"
        assert approval["hosts"] == ["this-machine"]
        assert not target.exists()
        model.push(say("It is made."))
        status, listed = await run("approvals", "list", "--json", env=env)
        assert [line for line in listed.out if f'"id": {approval["id"]}' in line]
        status, approved = await run("approve", str(approval["id"]), env=env)
        assert status == 0, approved.text()
        assert "It is made." in approved.text()
        assert target.exists()
        status, again = await run("approve", str(approval["id"]), env=env)
        assert status == 1
        assert "already" in again.text()
        assert model.violations == []


async def test_kill_9_in_mid_command_and_the_session_goes_on(home: dict[str, str]) -> None:
    async with FakeModel() as model:
        env = {
            **home,
            "OPENAI_BASE_URL": model.base_url,
            "OPENAI_API_KEY": "made-up",
            "OPSTHREAD_LEASE_S": "2",
        }
        model.push(
            calls(
                [
                    call(
                        "run_command",
                        hosts=["this-machine"],
                        command=FOLLOW,
                        timeout_s=55,
                    )
                ]
            )
        )
        async with started("ask", "follow it", "--json", env=env) as first:
            await _until(lambda: bool(following()))
            await first.kill()
            session = first.last("session")["session"]
        await _until(lambda: not following())
        model.push(
            say("The command was interrupted; I do not know how it ended."), say("Nothing more to do.")
        )
        status, second = await run("ask", "continue", "--session", str(session), "--json", env=env)
        assert status == 0, second.text()
        answers = [e["text"] for e in second.events() if e["event"] == "answer"]
        assert answers == ["The command was interrupted; I do not know how it ended.", "Nothing more to do."]
        results = [m["content"] for m in model.requests[1]["messages"] if m["role"] == "tool"]
        assert "unknown" in results[0]
        assert "It was not run again" in results[0]
        assert model.violations == []


async def test_kill_9_in_an_approved_change_and_its_outcome_is_collected(
    home: dict[str, str], tmp_path: Path
) -> None:
    log = tmp_path / "log"
    script = f"sh -c 'echo begun >> {log}; sleep 6; echo ended >> {log}; echo all done'"
    async with FakeModel([calls([call("run_command", hosts=["this-machine"], command=script)])]) as model:
        env = {
            **home,
            "OPENAI_BASE_URL": model.base_url,
            "OPENAI_API_KEY": "made-up",
            "OPSTHREAD_LEASE_S": "2",
        }
        _, asked = await run("ask", "do it", "--json", env=env)
        approval = asked.last("approval")
        async with started("approve", str(approval["id"]), env=env) as approving:
            await _until(log.exists)
            await approving.kill()
        model.push(say("It ended well."), say("Yes."))
        session = asked.last("session")["session"]
        status, after = await run("ask", "how did it end?", "--session", str(session), "--json", env=env)
        assert status == 0, after.text()
        assert log.read_text() == "begun\nended\n"
        results = [m["content"] for m in model.requests[1]["messages"] if m["role"] == "tool"]
        assert "exit 0" in results[0]
        assert "all done" in results[0]
        assert model.violations == []


async def test_ctrl_c_ends_the_command_on_the_host(home: dict[str, str]) -> None:
    import signal

    async with FakeModel() as model:
        env = {**home, "OPENAI_BASE_URL": model.base_url, "OPENAI_API_KEY": "made-up"}
        model.push(
            calls(
                [
                    call(
                        "run_command",
                        hosts=["this-machine"],
                        command=FOLLOW,
                        timeout_s=55,
                    )
                ]
            )
        )
        async with started("ask", "follow it", env=env) as first:
            await _until(lambda: bool(following()))
            first.send(signal.SIGINT)
            assert await first.wait() == 130
            assert "Stopped by" in first.text()
        await _until(lambda: not following())


BAD = [
    (["ask", "x"], {"DATABASE_URL": "postgresql://u:pw@127.0.0.1:1/x"}, 1, "the database cannot be reached"),
    (["ask", "x", "--session", "999"], {}, 1, "there is no session 999"),
]


@pytest.mark.parametrize(("args", "settings", "status", "says"), BAD)
async def test_bad_input_gets_one_clear_line_and_no_traceback(
    home: dict[str, str], args: list[str], settings: dict[str, str], status: int, says: str
) -> None:
    ended, process = await run(*args, env={**home, **settings})
    assert ended == status, process.text()
    assert says in process.text()
    assert "Traceback" not in process.text()
    assert "pw@" not in process.text()


async def _until(condition: object, timeout_s: float = 40.0) -> None:
    async with asyncio.timeout(timeout_s):
        while not condition():  # type: ignore[operator]
            await asyncio.sleep(0.02)
