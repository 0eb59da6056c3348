"""The embedded Postgres: one server a folder, over processes that share it and processes that are killed."""

from __future__ import annotations

import asyncio
import json
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import psycopg
import pytest

from storage.embedded import EmbeddedPostgres
from storage.embedded.account import Mode
from storage.embedded.binaries import find
from storage.embedded.process import server_pid
from storage.errors import EmbeddedPostgresError
from tests.conftest import FAST

REPOSITORY = Path(__file__).parents[2]
# A process that uses the folder until its stdin ends; it tells where the server is and who it is.
USER = """
import asyncio, concurrent.futures.thread, json, os, sys
from pathlib import Path
from storage.embedded import EmbeddedPostgres
if sys.argv[3:]:  # become an ordinary user, now that all is imported: it may not be able to read it
    os.setgroups([])
    os.setgid(int(sys.argv[4]))
    os.setuid(int(sys.argv[3]))
async def main():
    async with EmbeddedPostgres(Path(sys.argv[1]), settings=json.loads(sys.argv[2])) as postgres:
        print(json.dumps(postgres.url), flush=True)
        await asyncio.to_thread(sys.stdin.read)
asyncio.run(main())
"""
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")


@pytest.fixture
def folder() -> Iterator[Path]:
    """A short path that every account may pass through; no server is left in it."""
    made = Path(tempfile.mkdtemp(prefix="opsthread-test-"))
    made.chmod(0o755)
    yield made
    for pid_file in made.glob("**/postmaster.pid"):
        pid = server_pid(pid_file.parent)
        if pid is not None:
            os.kill(pid, signal.SIGQUIT)
    shutil.rmtree(made, ignore_errors=True)


class User:
    """Another process that uses the folder."""

    def __init__(
        self,
        folder: Path,
        settings: dict[str, str] | None = None,
        *,
        account: pwd.struct_passwd | None = None,
        **more: Any,
    ) -> None:
        words = [sys.executable, "-W", "error", "-c", USER, str(folder)]
        words.append(json.dumps(FAST if settings is None else settings))
        if account is not None:
            words += [str(account.pw_uid), str(account.pw_gid)]
        self.process = subprocess.Popen(
            words,
            cwd=REPOSITORY,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            **more,
        )

    def url(self) -> str:
        assert self.process.stdout is not None
        return str(json.loads(self.process.stdout.readline()))

    def leave(self) -> None:
        self.process.communicate(timeout=60)
        assert self.process.returncode == 0

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate(timeout=60)


def _query(url: str, statement: str) -> Any:
    with psycopg.connect(url, autocommit=True) as connection:
        found = connection.execute(statement)
        return found.fetchone()[0] if found.description else None  # type: ignore[index]


def _data(folder: Path) -> Path:
    return folder / "postgres" / "data"


async def _until(condition: Any, what: str) -> None:
    end = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < end, what
        await asyncio.sleep(0.02)


def test_processes_that_start_at_once_share_one_server_and_the_last_stops_it(folder: Path) -> None:
    users = [User(folder) for _ in range(3)]
    urls = {user.url() for user in users}
    assert len(urls) == 1
    pid = server_pid(_data(folder))
    for user in users[:2]:
        user.leave()
        assert _query(*urls, "SELECT 1") == 1
        assert server_pid(_data(folder)) == pid
    users[2].leave()
    assert server_pid(_data(folder)) is None
    assert not (_data(folder) / "postmaster.pid").exists(), "it was stopped in order"


def test_a_killed_starter_leaves_the_server_to_the_others(folder: Path) -> None:
    starter = User(folder)
    url = starter.url()
    pid = server_pid(_data(folder))
    other = User(folder)
    other.url()
    starter.kill()
    assert _query(url, "SELECT 1") == 1
    assert server_pid(_data(folder)) == pid
    other.leave()
    assert server_pid(_data(folder)) is None


def test_when_all_users_were_killed_the_next_adopts_the_server_and_stops_it(folder: Path) -> None:
    users = [User(folder), User(folder)]
    url, _ = (user.url() for user in users)
    _query(url, "CREATE TABLE kept AS SELECT 7 AS n")
    pid = server_pid(_data(folder))
    for user in users:
        user.kill()
    later = User(folder)
    assert later.url() == url
    assert server_pid(_data(folder)) == pid
    assert _query(url, "SELECT n FROM kept") == 7
    later.leave()
    assert server_pid(_data(folder)) is None


def test_ctrl_c_at_the_terminal_does_not_reach_the_server(folder: Path) -> None:
    user = User(folder, start_new_session=True)
    url = user.url()
    os.killpg(user.process.pid, signal.SIGKILL)
    user.process.communicate()
    assert _query(url, "SELECT 1") == 1


async def test_a_killed_server_recovers_with_what_was_committed(folder: Path) -> None:
    async with EmbeddedPostgres(folder) as postgres:  # durable, as in earnest
        _query(postgres.url, "CREATE TABLE kept AS SELECT 7 AS n")
        pid = server_pid(_data(folder))
        assert pid is not None
        assert await postgres.ensure() == postgres.url
        assert server_pid(_data(folder)) == pid, "nothing is done while it lives"
        os.kill(pid, signal.SIGKILL)
        await postgres.ensure()
        assert server_pid(_data(folder)) not in (None, pid)
        assert _query(postgres.url, "SELECT n FROM kept") == 7


async def test_a_server_killed_with_its_starter_is_started_by_the_next(folder: Path) -> None:
    user = User(folder, settings={})
    _query(user.url(), "CREATE TABLE kept AS SELECT 7 AS n")
    pid = server_pid(_data(folder))
    assert pid is not None
    user.kill()
    os.kill(pid, signal.SIGKILL)
    async with EmbeddedPostgres(folder) as postgres:
        assert _query(postgres.url, "SELECT n FROM kept") == 7


async def test_a_dead_server_that_its_parent_never_reaped_is_not_alive(folder: Path) -> None:
    user = User(folder)  # it starts the server, and then only waits: a dead server stays its zombie
    user.url()
    pid = server_pid(_data(folder))
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    await _until(lambda: server_pid(_data(folder)) is None, "a zombie counted as alive")
    os.kill(pid, 0)  # the kernel still knows the number
    async with EmbeddedPostgres(folder, settings=FAST) as postgres:
        assert _query(postgres.url, "SELECT 1") == 1
        user.leave()
        assert _query(postgres.url, "SELECT 1") == 1


async def test_a_pid_file_with_a_strangers_number_is_stale(folder: Path) -> None:
    async with EmbeddedPostgres(folder, settings=FAST):
        lines = (_data(folder) / "postmaster.pid").read_text().splitlines()
    (_data(folder) / "postmaster.pid").write_text("\n".join([str(os.getpid()), *lines[1:]]) + "\n")
    assert server_pid(_data(folder)) is None
    async with EmbeddedPostgres(folder, settings=FAST) as postgres:
        assert _query(postgres.url, "SELECT 1") == 1


async def test_a_half_made_data_folder_is_made_again(folder: Path) -> None:
    half = folder / "postgres" / "data.new"
    half.mkdir(parents=True)
    half.joinpath("PG_VERSION").write_text("18\n")
    async with EmbeddedPostgres(folder, settings=FAST) as postgres:
        assert _query(postgres.url, "SELECT 1") == 1


async def test_a_path_longer_than_a_socket_allows(folder: Path) -> None:
    deep = folder.joinpath(*["a-rather-long-name-of-a-folder"] * 5)
    async with EmbeddedPostgres(deep, settings=FAST) as postgres:
        assert _query(postgres.url, "SELECT 1") == 1
        sockets = Path(_query(postgres.url, "SHOW unix_socket_directories"))
    assert sockets.stat().st_mode & 0o777 == 0o700
    with socket.socket(socket.AF_UNIX) as stranger, suppress(OSError):
        stranger.bind(str(sockets / "x"))  # short enough to bind
    sockets.chmod(0o755)
    try:
        with pytest.raises(EmbeddedPostgresError, match="is not a private folder"):
            await EmbeddedPostgres(deep, settings=FAST).start()
    finally:
        shutil.rmtree(sockets)


async def test_only_this_account_reaches_it_and_it_does_not_know_our_keys(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret")
    async with EmbeddedPostgres(folder, settings=FAST) as postgres:
        assert _query(postgres.url, "SHOW listen_addresses") == ""
        assert (folder / "postgres").stat().st_mode & 0o777 == 0o700
        assert _data(folder).stat().st_mode & 0o777 == 0o700
        assert _query(postgres.url, "SELECT lower('ÄЖ')") == "äж"
        environment = Path(f"/proc/{server_pid(_data(folder))}/environ")
        if environment.exists():
            assert b"sk-very-secret" not in environment.read_bytes()


async def test_a_server_that_cannot_start_says_why_in_one_line(folder: Path) -> None:
    broken = EmbeddedPostgres(folder, settings={**FAST, "shared_buffers": "plenty"})
    with pytest.raises(EmbeddedPostgresError, match=r"did not start.*shared_buffers.*plenty") as caught:
        await broken.start()
    assert "\n" not in str(caught.value)
    async with EmbeddedPostgres(folder, settings=FAST) as postgres:
        assert _query(postgres.url, "SELECT 1") == 1


async def test_a_folder_of_another_major_version_is_refused_clearly(folder: Path) -> None:
    async with EmbeddedPostgres(folder, settings=FAST):
        pass
    (_data(folder) / "PG_VERSION").write_text("12\n")
    with pytest.raises(EmbeddedPostgresError, match="made by PostgreSQL 12, but only"):
        await EmbeddedPostgres(folder, settings=FAST).start()


async def test_a_folder_that_cannot_be_written_is_named(folder: Path) -> None:
    (folder / "file").write_text("")
    with pytest.raises(EmbeddedPostgresError, match=r"file.*set OPSTHREAD_DATA_DIR"):
        await EmbeddedPostgres(folder / "file" / "below", settings=FAST).start()


async def test_a_damaged_record_is_named(folder: Path) -> None:
    (folder / "postgres").mkdir()
    (folder / "postgres" / "account.json").write_text("{}")
    with pytest.raises(EmbeddedPostgresError, match=r"account\.json is damaged"):
        await EmbeddedPostgres(folder, settings=FAST).start()


async def test_stopping_without_a_start_or_twice_is_harmless(folder: Path) -> None:
    postgres = EmbeddedPostgres(folder, settings=FAST)
    await postgres.stop()
    await postgres.start()
    await postgres.stop()
    await postgres.stop()


async def test_stopping_after_the_folder_was_removed_is_harmless(folder: Path) -> None:
    postgres = EmbeddedPostgres(folder / "gone", settings=FAST)
    await postgres.start()
    pid = server_pid(folder / "gone/postgres/data")
    shutil.rmtree(folder / "gone")
    await postgres.stop()
    assert pid is not None
    os.kill(pid, signal.SIGQUIT)  # it would notice within a minute


def test_programs_are_found_for_the_version_that_made_the_data() -> None:
    newest = find()
    assert newest.major >= 15
    assert find(newest.major) == newest
    with pytest.raises(EmbeddedPostgresError, match="made by PostgreSQL 11"):
        find(11)


@as_root
def test_an_ordinary_user_runs_it_as_itself_and_root_may_join(folder: Path) -> None:
    home = folder / "home"
    home.mkdir()
    account = pwd.getpwnam("nobody")
    os.chown(home, account.pw_uid, account.pw_gid)
    user = User(home, account=account)
    url = user.url()
    assert (home / "postgres" / "data").stat().st_uid == account.pw_uid
    root = User(home)
    assert root.url() == url
    user.leave()
    assert _query(url, "SELECT 1") == 1
    root.leave()
    again = User(home)  # root starts what the ordinary user made, as that user
    assert _query(again.url(), "SELECT 1") == 1
    pid = server_pid(home / "postgres" / "data")
    assert Path(f"/proc/{pid}").stat().st_uid == account.pw_uid
    again.leave()


@as_root
async def test_root_without_user_namespaces_runs_it_as_nobody_and_stays_with_it(folder: Path) -> None:
    data, system = folder / "root-only", folder / "system"
    data.mkdir(mode=0o700)
    async with EmbeddedPostgres(data, settings=FAST, prefer=Mode.PLAIN, system_dir=system) as postgres:
        _query(postgres.url, "CREATE TABLE kept AS SELECT 7 AS n")
        (home,) = [path for path in system.iterdir() if path.joinpath("data").exists()]
        assert home.stat().st_uid == pwd.getpwnam("nobody").pw_uid
    async with EmbeddedPostgres(data, settings=FAST, system_dir=system) as postgres:
        assert _query(postgres.url, "SELECT n FROM kept") == 7
    assert not (data / "postgres" / "data").exists()


@as_root
def test_somebody_elses_database_is_not_opened(folder: Path) -> None:
    (folder / "postgres").mkdir(mode=0o755)
    record = folder / "postgres" / "account.json"
    record.write_text(json.dumps({"mode": "plain", "uid": 0, "gid": 0, "home": str(folder / "postgres")}))
    record.chmod(0o644)
    nobody = pwd.getpwnam("nobody")
    os.chown(folder / "postgres", nobody.pw_uid, nobody.pw_gid)
    user = User(folder, account=nobody, stderr=subprocess.PIPE)
    _, told = user.process.communicate(timeout=60)
    assert "belongs to another account (uid 0)" in told
