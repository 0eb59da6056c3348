"""Reads over SSH: every row of the measured facts, against the practice host and a real sshd."""

from __future__ import annotations

import asyncio
import os
import resource
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from bot.ssh.inventory import Host
from bot.ssh.pool import Pool
from bot.ssh.remote import Remote
from tests.fakes.ssh import Sshd, alive
from tests.ssh.conftest import until


async def test_a_command_gives_status_and_both_streams_apart(host: Host, remote: Remote) -> None:
    outcome = await remote.run(host, "echo out; echo err >&2; exit 3", limit_s=10)
    assert (outcome.exit_status, outcome.stdout, outcome.stderr) == (3, "out\n", "err\n")
    assert (outcome.stdout_bytes, outcome.stderr_bytes, outcome.truncated) == (4, 4, False)
    assert not outcome.unknown
    assert not outcome.timed_out


async def test_output_without_a_last_newline_stays_as_it_is(host: Host, remote: Remote) -> None:
    assert (await remote.run(host, "printf ' a\n\nb '", limit_s=10)).stdout == " a\n\nb "


async def test_the_environment_is_ours_alone(host: Host, remote: Remote) -> None:
    outcome = await remote.run(host, "env; echo stdin=$(cat)", limit_s=10)
    names = {line.partition("=")[0] for line in outcome.stdout.splitlines()}
    assert names <= {
        "PATH", "HOME", "LC_ALL", "TERM", "PAGER", "SYSTEMD_PAGER", "GIT_PAGER", "LESSSECURE", "PWD", "_",
        "SHLVL", "stdin",
    }  # fmt: skip
    assert "stdin=\n" in outcome.stdout
    assert "/sbin" in outcome.stdout


async def test_home_and_env_of_the_host_reach_the_command(sshd: Sshd, remote: Remote) -> None:
    host = sshd.host(home="/var", env=(("KUBECONFIG", "/etc/it's here"), ("EMPTY", "")))
    outcome = await remote.run(host, 'echo "$HOME|$KUBECONFIG|${EMPTY-unset}|"', limit_s=10)
    assert outcome.stdout == "/var|/etc/it's here||\n"


@pytest.mark.sshd
async def test_a_polluted_start_up_file_neither_prints_nor_hijacks(sshd: Sshd, remote: Remote) -> None:
    outcome = await remote.run(sshd.host(), "ls -d /; echo ${LD_TRICK-clean}", limit_s=10)
    assert (outcome.stdout, outcome.stderr) == ("/\nclean\n", "")


async def test_quoted_text_is_never_run(host: Host, remote: Remote, tmp_path: Path) -> None:
    trap = tmp_path / "ran"
    outcome = await remote.run(host, f"'echo' '$(touch {trap})' '`touch {trap}`'", limit_s=10)
    assert outcome.stdout == f"$(touch {trap}) `touch {trap}`\n"
    assert not trap.exists()


async def test_binary_output_is_decoded_and_the_connection_lives(host: Host, remote: Remote) -> None:
    outcome = await remote.run(host, "printf 'a\\377\\000b'; head -c 100000 /dev/urandom", limit_s=10)
    assert outcome.exit_status == 0
    assert outcome.stdout.startswith("a\ufffd\ufffdb")
    assert outcome.stdout_bytes == 100_004
    assert (await remote.run(host, "echo alive", limit_s=10)).stdout == "alive\n"


async def test_the_limit_ends_a_command_and_says_so(host: Host, remote: Remote, mark: str) -> None:
    outcome = await remote.run(host, f"echo begun; sleep {mark}", limit_s=1)
    assert (outcome.timed_out, outcome.exit_status, outcome.signal) == (True, None, "TERM")
    assert (outcome.stdout, outcome.stderr, outcome.unknown) == ("begun\n", "", "")
    assert 0.9 < outcome.seconds < 2
    await until(lambda: not alive(mark))


async def test_a_child_that_ignores_term_is_killed_with_its_group(
    host: Host, remote: Remote, mark: str
) -> None:
    outcome = await remote.run(host, f"trap '' TERM; sleep {mark} | sleep {mark}", limit_s=1)
    assert (outcome.timed_out, outcome.signal) == (True, "KILL")
    assert outcome.seconds < 5
    await until(lambda: not alive(mark))


@pytest.mark.parametrize("status", [124, 137])
async def test_124_and_137_of_the_program_itself_are_not_taken_for_the_limit(
    host: Host, remote: Remote, status: int
) -> None:
    outcome = await remote.run(host, f"exit {status}", limit_s=10)
    assert (outcome.exit_status, outcome.timed_out) == (status, False)


async def test_cancelling_ends_the_command_on_the_host(host: Host, remote: Remote, mark: str) -> None:
    task = asyncio.create_task(remote.run(host, f"trap '' TERM; sleep {mark} | sleep {mark}", limit_s=600))
    await until(lambda: alive(mark))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await until(lambda: not alive(mark))
    assert (await remote.run(host, "echo alive", limit_s=10)).stdout == "alive\n"


async def test_cancelling_at_any_moment_leaves_nothing_running(host: Host, remote: Remote, mark: str) -> None:
    for moment in (0, 0.002, 0.005, 0.01, 0.02, 0.04):
        tasks = [asyncio.create_task(remote.run(host, f"sleep {mark}", limit_s=600)) for _ in range(4)]
        await asyncio.sleep(moment)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    await until(lambda: not alive(mark))
    outcomes = await asyncio.gather(*(remote.run(host, "echo alive", limit_s=10) for _ in range(8)))
    assert [outcome.stdout for outcome in outcomes] == ["alive\n"] * 8


async def test_closing_ends_the_command_on_the_host(host: Host, mark: str) -> None:
    remote = Remote()
    task = asyncio.create_task(remote.run(host, f"sleep {mark}", limit_s=600))
    await until(lambda: alive(mark))
    await remote.close()
    outcome = await task
    assert f"the connection broke while `sleep {mark}` ran on {host.name}" in outcome.unknown
    assert outcome.exit_status is None
    await until(lambda: not alive(mark))


async def test_a_nohup_child_does_not_outlive_its_command(host: Host, remote: Remote, mark: str) -> None:
    outcome = await remote.run(host, f"nohup sleep {mark} & echo started", limit_s=10)
    assert outcome.stdout == "started\n"
    assert outcome.seconds < 3
    await until(lambda: not alive(mark))


async def test_a_child_in_its_own_session_does_not_hold_us(host: Host, remote: Remote, mark: str) -> None:
    """It escapes every kill and holds stdout open; the end marker ends the command all the same."""
    outcome = await remote.run(host, f"setsid sleep {mark} & sleep .2; echo over", limit_s=30)
    assert (outcome.exit_status, outcome.stdout) == (0, "over\n")
    assert outcome.seconds < 3
    for pid in alive(mark):
        os.kill(pid, signal.SIGKILL)


async def test_much_output_keeps_memory_flat(host: Host, remote: Remote) -> None:
    await remote.run(host, "echo warm", limit_s=10)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    outcome = await remote.run(
        host, "echo first; head -c 50000000 /dev/zero | tr '\\0' x; echo last", limit_s=60
    )
    assert outcome.stdout_bytes == 50_000_011
    assert outcome.truncated
    assert outcome.stdout.startswith("first\nxxx")
    assert outcome.stdout.endswith("xxxlast\n")
    assert "[… 49,744,011 bytes left out …]" in outcome.stdout
    assert len(outcome.stdout) < 257_000
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 40_000  # kB


async def test_endless_output_ends_at_the_limit(host: Host, remote: Remote, mark: str) -> None:
    outcome = await remote.run(host, f"yes {mark}", limit_s=1)
    assert outcome.timed_out
    assert outcome.truncated
    assert outcome.seconds < 5
    await until(lambda: not alive(mark))


async def test_progress_is_told_while_it_runs(demo: Host) -> None:
    remote, told = Remote(progress_s=0.2), list[tuple[float, int]]()

    async def progress(seconds: float, size: int) -> None:
        told.append((seconds, size))

    await remote.run(demo, "echo some; sleep 1", limit_s=10, on_progress=progress)
    await remote.close()
    assert len(told) >= 3
    assert told[0][0] >= 0.2
    assert told[-1][1] >= 5


async def test_fifty_commands_at_once_all_succeed(host: Host, remote: Remote) -> None:
    runs = [remote.run(host, f"sleep .05; echo {n}", limit_s=30) for n in range(50)]
    outcomes = await asyncio.gather(*runs)
    assert [outcome.stdout for outcome in outcomes] == [f"{n}\n" for n in range(50)]


@pytest.mark.sshd
async def test_a_connection_killed_in_mid_command_is_unknown(sshd: Sshd, mark: str) -> None:
    remote, host = Remote(), sshd.host()
    task = asyncio.create_task(remote.run(host, f"echo begun; sleep {mark}", limit_s=60))
    await until(lambda: alive(mark))
    for pid in sshd.sessions():
        os.kill(pid, signal.SIGKILL)
    outcome = await task
    assert outcome.exit_status is None
    assert outcome.unknown.endswith("I do not know whether it finished")
    await until(lambda: not alive(mark))
    assert (await remote.run(host, "echo again", limit_s=10)).stdout == "again\n"  # a new connection
    await remote.close()


@pytest.mark.sshd
async def test_a_connection_that_froze_while_idle_is_replaced(sshd: Sshd) -> None:
    """Nothing of the command was sent on it, so it may be sent on a new one."""
    remote, host = Remote(open_s=0.5), sshd.host()
    await remote.run(host, "true", limit_s=10)
    with frozen(sshd):
        outcome = await remote.run(host, "echo fresh", limit_s=10)
    assert (outcome.exit_status, outcome.stdout) == (0, "fresh\n")
    await remote.close()


@pytest.mark.sshd
async def test_a_connection_that_freezes_in_mid_command_does_not_hang(sshd: Sshd, mark: str) -> None:
    remote, host = Remote(grace_s=0.5), sshd.host()
    task = asyncio.create_task(remote.run(host, f"sleep {mark}", limit_s=1))
    await until(lambda: alive(mark))
    with frozen(sshd):
        outcome = await asyncio.wait_for(task, 6)
    assert outcome.exit_status is None
    assert (
        outcome.unknown == f"`sleep {mark}` did not end on web-1 at its limit of 1 s and may still run there"
    )
    assert (await remote.run(host, "echo again", limit_s=10)).stdout == "again\n"
    await remote.close()
    await until(lambda: not alive(mark))


@pytest.mark.sshd
async def test_keepalives_find_a_dead_connection_before_the_limit(sshd: Sshd, mark: str) -> None:
    remote, host = Remote(pool=Pool(keepalive_s=0.2)), sshd.host()
    task = asyncio.create_task(remote.run(host, f"sleep {mark}", limit_s=600))
    await until(lambda: alive(mark))
    with frozen(sshd):
        outcome = await asyncio.wait_for(task, 6)
    assert "the connection broke" in outcome.unknown
    await remote.close()
    await until(lambda: not alive(mark))


@contextmanager
def frozen(sshd: Sshd) -> Iterator[None]:
    """The connections' server processes stopped: TCP stays up and nobody answers."""
    pids = sshd.sessions()
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
