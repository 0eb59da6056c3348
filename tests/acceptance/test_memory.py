"""Memories over Slack, with a restart between learning and using: a wish, a version, a solved case."""

from __future__ import annotations

from pathlib import Path

from storage.memories import rows
from storage.records import Memory, MemoryKind
from tests.acceptance.conftest import Office, run
from tests.fakes.model import say
from tests.fakes.slack import words


async def test_what_was_said_and_seen_is_known_after_a_restart_to_its_person_alone(
    office: Office, tmp_path: Path
) -> None:
    redis = _program(
        office, tmp_path, "redis-server", "Redis server v=7.2.4 sha=00000000:0 malloc=libc bits=64"
    )
    bot = await office.serve()

    # Alice says how she wants it, and looks at a version; both turns are over when the process dies.
    office.model.push(say("I will."))
    await office.answered(await office.slack.mention("U01ALICE", "from now on run commands with sudo"))
    office.model.push(run("redis-server --version"), say("It is 7.2.4."))
    await office.answered(await office.slack.mention("U01ALICE", "which redis runs on web-1?"))
    office.model.push(
        run("uptime"),
        say("The cause is that the redis pool is full (10000 of 10000 clients). Suggest raising maxclients."),
    )
    await office.answered(await office.slack.mention("U01ALICE", "why does nginx on web-1 answer 502?"))
    office.model.push(say("好的。"))
    await office.answered(await office.slack.mention("U03CAROL", "以后执行命令都加 sudo"))
    await bot.kill()
    bot = await office.serve()

    # Her next session is shaped by it, and says so; a colleague's is not.
    office.model.push(say("Looking with sudo."))
    (answer,) = await office.answered(await office.slack.mention("U01ALICE", "check the disk of web-1"))
    assert "Asked the bot: from now on run commands with sudo" in _asked(office)
    assert "Used" in words(answer)
    office.model.push(say("Full enough."))
    (answer,) = await office.answered(await office.slack.mention("U02BOB", "check the disk of web-1"))
    assert "sudo" not in _asked(office)
    assert "Used" not in words(answer)
    office.model.push(say("好的。"))
    await office.answered(await office.slack.mention("U03CAROL", "看看 web-1 的磁盘"))
    assert "以后执行命令都加 sudo" in _asked(office)

    # The version is known, and replaced after an upgrade; the old value is listed with its dates.
    office.model.push(say("7.2.4, as noted."))
    await office.answered(await office.slack.mention("U01ALICE", "which version of redis-server has web-1?"))
    assert "redis-server is version 7.2.4" in _asked(office)
    redis.write_text(redis.read_text().replace("7.2.4", "7.4.1"))
    office.model.push(run("redis-server --version"), say("It is 7.4.1 now."))
    await office.answered(await office.slack.mention("U01ALICE", "it was upgraded, look at redis on web-1"))
    await bot.kill()
    await office.serve()
    office.model.push(say("7.4.1."))
    await office.answered(await office.slack.mention("U01ALICE", "which version of redis-server has web-1?"))
    assert "redis-server is version 7.4.1" in _asked(office)
    assert "7.2.4" not in _asked(office)
    old, new = [m for m in await _memories(office, "U01ALICE") if m.kind is MemoryKind.SOFTWARE_FACT]
    assert (old.value, new.value) == ("7.2.4", "7.4.1")
    assert old.valid_to == new.valid_from
    assert old.superseded_by == new.id

    # The case comes back at the next 502, to the one who solved it.
    office.model.push(say("Perhaps the pool again."))
    await office.answered(await office.slack.mention("U01ALICE", "nginx gives 502 again on web-1"))
    assert "the redis pool is full" in _asked(office)
    office.model.push(say("I do not know yet."))
    await office.answered(await office.slack.mention("U02BOB", "nginx gives 502 again on web-1"))
    assert "redis pool" not in str(office.model.requests[-1])
    office.sound()


def _program(office: Office, folder: Path, name: str, prints: str) -> Path:
    """A program of the host web-1 that prints this."""
    program = folder / "bin" / name
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\necho '{prints}'\n")
    program.chmod(0o755)
    hosts = Path(office.env["OPSTHREAD_HOSTS"])
    text = hosts.read_text()
    start = text.index("{name: web-1,") + len("{name: web-1,")
    hosts.write_text(f"{text[:start]} env: {{PATH: '{program.parent}:/usr/bin:/bin'}},{text[start:]}")
    return program


def _asked(office: Office) -> str:
    """The last words of a person in the newest request, with the blocks before them."""
    return str([m for m in office.model.requests[-1]["messages"] if m["role"] == "user"][-1]["content"])


async def _memories(office: Office, person: str) -> list[Memory]:
    async with office.store.begin() as db:
        return await rows.list_(db, team=office.slack.workspace.team, owner=person, history=True)
