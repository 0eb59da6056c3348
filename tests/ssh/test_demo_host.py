"""The practice host: one key, one account, the same port and host key for every process of a folder."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from bot.demo import keys
from bot.demo.host import DemoHost, missing_tools, write_hosts_yml
from bot.errors import HostError, HostUnreachable
from bot.ssh.inventory import Host, load
from bot.ssh.remote import Remote
from tests.fakes.ssh import alive, pair
from tests.ssh.conftest import until


async def test_the_folders_files_are_private_and_stay_the_same(tmp_path: Path) -> None:
    folder = tmp_path / "data" / "demo"
    first = DemoHost(folder)
    port = await first.start()
    hosts = write_hosts_yml(folder, port)
    before = {path.name: path.read_bytes() for path in folder.iterdir() if path.name != ".lock"}
    for name in ("id_ed25519", "host_ed25519", "hosts.yml"):
        assert (folder / name).stat().st_mode & 0o777 == 0o600
    assert folder.stat().st_mode & 0o777 == 0o700
    await first.stop()
    second = DemoHost(folder)
    assert await second.start() == port
    write_hosts_yml(folder, port)
    assert {path.name: path.read_bytes() for path in folder.iterdir() if path.name != ".lock"} == before
    rule = load(hosts).for_team("any").rules[0]
    assert (rule.users, rule.channels, rule.self_approval) == (("local:*",), ("terminal",), True)
    await second.stop()


OTHER = """
import asyncio, sys
from pathlib import Path
from bot.demo.host import DemoHost
async def main():
    demo = DemoHost(Path(sys.argv[1]))
    print(await demo.start(), flush=True)
    await asyncio.to_thread(sys.stdin.read)
    await demo.stop()
asyncio.run(main())
"""


async def test_two_processes_of_a_folder_share_the_port(demo: Host, remote: Remote) -> None:
    folder = demo.identity[0].parent
    with subprocess.Popen(
        [sys.executable, "-c", OTHER, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert other.stdin is not None
        assert other.stdout is not None
        assert int(await asyncio.to_thread(other.stdout.readline)) == demo.port
        for _ in range(6):  # whichever of both the system picks
            one = Remote()
            assert (await one.run(demo, "echo same", limit_s=9)).stdout == "same\n"
            await one.close()
        await asyncio.to_thread(other.communicate)
    assert (await remote.run(demo, "echo still here", limit_s=9)).stdout == "still here\n"


async def test_a_port_that_a_stranger_took_is_replaced(tmp_path: Path) -> None:
    keys.prepare(tmp_path)
    with socket.socket() as stranger:
        stranger.bind(("127.0.0.1", 0))
        stranger.listen()
        taken = stranger.getsockname()[1]
        keys.store_port(tmp_path, taken)
        demo = DemoHost(tmp_path)
        port = await demo.start()
        assert port != taken
        assert keys.stored_port(tmp_path) == port
        await demo.stop()


async def test_only_this_account_with_this_key_gets_in(demo: Host, remote: Remote, tmp_path: Path) -> None:
    pair(tmp_path / "other")
    for wrong in (replace(demo, user="nobody-else"), replace(demo, identity=(tmp_path / "other",))):
        with pytest.raises(HostUnreachable, match="refused the log-in"):
            await remote.run(wrong, "true", limit_s=5)


async def test_our_own_environment_does_not_reach_the_host(
    demo: Host, remote: Remote, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-bot")
    outcome = await remote.run(
        demo, "env; tr '\\0' '\\n' </proc/$PPID/environ; cat /proc/self/environ", limit_s=9
    )
    assert "sk-of-the-bot" not in outcome.stdout


async def test_stopping_lets_what_runs_end_and_kills_the_rest(tmp_path: Path, mark: str) -> None:
    server = DemoHost(tmp_path)
    host = load(write_hosts_yml(tmp_path, await server.start())).for_team("").hosts[0]
    remote = Remote()
    short = asyncio.create_task(remote.run(host, f"sleep .5; echo ended {mark}", limit_s=20))
    await until(lambda: alive(mark))
    await server.stop()
    assert (await short).stdout == f"ended {mark}\n"
    await remote.close()


async def test_a_machine_without_the_tools_is_told_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bot.demo.host.PATH", str(tmp_path))
    assert "install util-linux" in missing_tools()
    with pytest.raises(HostError, match="cannot be the practice host"):
        await DemoHost(tmp_path / "demo").start()
    assert os.listdir(tmp_path) == []
