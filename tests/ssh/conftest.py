"""Hosts to run on: the practice host in this process, and a real sshd where there is one."""

from __future__ import annotations

import asyncio
import os
import secrets
import shutil
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest

from bot.demo.host import DemoHost, write_hosts_yml
from bot.ssh import detached
from bot.ssh.inventory import Host, load
from bot.ssh.remote import Remote
from tests.fakes.ssh import Sshd, sshd_path


def need(found: object, what: str) -> None:
    """Skip loudly without `what`; where the full set is demanded, fail."""
    if not found:
        if os.environ.get("TEST_FULL") == "1":
            pytest.fail(f"TEST_FULL=1, but {what} is not installed")
        pytest.skip(f"NOT TESTED: {what} is not installed here (apt-get install openssh-server busybox)")


@pytest.fixture
async def demo(tmp_path: Path) -> AsyncIterator[Host]:
    server = DemoHost(tmp_path / "demo")
    port = await server.start()
    yield load(write_hosts_yml(tmp_path / "demo", port)).for_team("any").hosts[0]
    await server.stop()


@pytest.fixture(scope="session")
def sshd_server() -> Iterator[Sshd]:
    need(sshd_path(), "sshd")
    with tempfile.TemporaryDirectory(prefix="opsthread-sshd-") as name:
        Path(name).chmod(0o755)
        server = Sshd(Path(name))
        server.start()
        yield server
        server.stop()


@pytest.fixture
def sshd(sshd_server: Sshd) -> Sshd:
    return sshd_server


@pytest.fixture(params=["practice host", pytest.param("sshd", marks=pytest.mark.sshd)])
def host(request: pytest.FixtureRequest) -> Host:
    if request.param == "sshd":
        return request.getfixturevalue("sshd_server").host()
    found: Host = request.getfixturevalue("demo")
    return found


@pytest.fixture
async def remote() -> AsyncIterator[Remote]:
    made = Remote()
    yield made
    await made.close()


@pytest.fixture
def key() -> Iterator[str]:
    """The key of a change; its tomb on this machine is removed after the test."""
    made = f"test-{secrets.token_hex(8)}"
    yield made
    shutil.rmtree(kept(made), ignore_errors=True)


def kept(key: str) -> Path:
    """Where a change of this key is kept on this machine."""
    return Path("/var/tmp") / f".opsthread-{os.getuid()}" / detached.folder_name(key)


@pytest.fixture
def mark() -> str:
    """A number of seconds to sleep that no other process sleeps."""
    return f"7{secrets.randbelow(10**8):08d}"


async def until(true: Callable[[], object], seconds: float = 8.0) -> None:
    """Wait for a state; fails when it does not come."""
    ends = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < ends, "the awaited state did not come"
        await asyncio.sleep(0.02)
