"""Approved changes: they live through everything that happens to us and never run twice."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from bot.ssh import detached
from bot.ssh.inventory import Host
from bot.ssh.pool import Pool
from bot.ssh.remote import Remote
from tests.fakes.ssh import Sshd, alive
from tests.ssh.conftest import kept, until


async def test_a_change_gives_status_output_and_both_streams(host: Host, remote: Remote, key: str) -> None:
    outcome = await remote.change(host, "echo out; echo err >&2; exit 7", key=key, limit_s=10)
    assert (outcome.exit_status, outcome.stdout, outcome.stderr) == (7, "out\n", "err\n")
    assert not outcome.unknown
    assert not outcome.timed_out


async def test_the_same_key_never_runs_twice(host: Host, remote: Remote, key: str, tmp_path: Path) -> None:
    run = f"echo x >>{tmp_path}/ran; exit 5"
    both = await asyncio.gather(*(remote.change(host, run, key=key, limit_s=10) for _ in range(3)))
    later = await remote.change(host, run, key=key, limit_s=10)
    assert [outcome.exit_status for outcome in (*both, later)] == [5, 5, 5, 5]
    assert (tmp_path / "ran").read_text() == "x\n"


async def test_the_output_is_private_and_removed_once_collected(demo: Host, remote: Remote, key: str) -> None:
    task = asyncio.create_task(remote.change(demo, "echo secret; sleep 1", key=key, limit_s=10))
    await until(lambda: (kept(key) / "out").exists())
    assert kept(key).stat().st_mode & 0o777 == 0o700
    assert kept(key).parent.stat().st_mode & 0o777 == 0o700
    assert (await task).stdout == "secret\n"
    assert not (kept(key) / "out").exists()
    again = await remote.collect(demo, key=key, limit_s=5)
    assert again is not None
    assert (again.exit_status, again.stdout, again.truncated) == (0, "", True)


async def test_what_never_started_is_none(host: Host, remote: Remote, key: str) -> None:
    assert await remote.collect(host, key=key, limit_s=5) is None


async def test_cancelling_leaves_a_change_running(demo: Host, remote: Remote, key: str, mark: str) -> None:
    task = asyncio.create_task(remote.change(demo, f"sleep 1; echo survived {mark}", key=key, limit_s=20))
    await until(lambda: (kept(key) / "started").exists())
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert alive(mark)
    outcome = await remote.collect(demo, key=key, limit_s=10)
    assert outcome is not None
    assert (outcome.exit_status, outcome.stdout) == (0, f"survived {mark}\n")


KILLED = """
import asyncio, sys
from pathlib import Path
from bot.ssh.inventory import Host
from bot.ssh.remote import Remote
name, port, user, known, identity, key, run = sys.argv[1:]
host = Host(name, "127.0.0.1", int(port), user, Path(known), (Path(identity),))
asyncio.run(Remote().change(host, run, key=key, limit_s=30))
"""


async def test_a_change_survives_our_kill_9_and_another_process_collects_it(
    host: Host, remote: Remote, key: str, mark: str, tmp_path: Path
) -> None:
    run = f"echo {mark} >>{tmp_path}/ran; sleep 1.5; echo finished {mark}"
    words = [host.name, str(host.port), host.user, str(host.known_hosts), str(host.identity[0]), key, run]
    process = subprocess.Popen([sys.executable, "-c", KILLED, *words], stdout=subprocess.DEVNULL)
    await until(lambda: (tmp_path / "ran").exists() or process.poll() is not None, 20)
    process.send_signal(signal.SIGKILL)
    process.wait()
    outcome = await remote.collect(host, key=key, limit_s=15)
    assert outcome is not None
    assert (outcome.exit_status, outcome.stdout) == (0, f"finished {mark}\n")
    assert (await remote.change(host, run, key=key, limit_s=15)).exit_status == 0
    assert (tmp_path / "ran").read_text() == f"{mark}\n"


@pytest.mark.sshd
async def test_a_lost_connection_is_taken_up_again(sshd: Sshd, remote: Remote, key: str) -> None:
    task = asyncio.create_task(remote.change(sshd.host(), "sleep 1.5; echo finished", key=key, limit_s=20))
    await until(lambda: (kept(key) / "started").exists())
    await asyncio.sleep(0.3)  # the follower has said that it began
    for pid in sshd.sessions():
        os.kill(pid, signal.SIGKILL)
    outcome = await task
    assert (outcome.exit_status, outcome.stdout, outcome.unknown) == (0, "finished\n", "")


async def test_a_change_still_running_is_said_and_collected_later(
    demo: Host, remote: Remote, key: str
) -> None:
    task = asyncio.create_task(remote.change(demo, "sleep 2; echo end", key=key, limit_s=20))
    await until(lambda: (kept(key) / "started").exists())
    early = await remote.collect(demo, key=key, limit_s=1)
    assert early is not None
    assert "still runs on" in early.unknown
    assert early.exit_status is None
    assert (await task).stdout == "end\n"


async def test_the_limit_ends_a_change(host: Host, remote: Remote, key: str, mark: str) -> None:
    outcome = await remote.change(host, f"echo begun; sleep {mark}", key=key, limit_s=1)
    assert (outcome.timed_out, outcome.exit_status, outcome.stdout) == (True, None, "begun\n")
    again = await remote.collect(host, key=key, limit_s=5)
    assert again is not None
    assert again.timed_out
    await until(lambda: not alive(f"sleep {mark}"))


async def test_a_runner_that_was_killed_is_unknown(demo: Host, remote: Remote, key: str, mark: str) -> None:
    task = asyncio.create_task(remote.change(demo, f"echo part; sleep {mark}", key=key, limit_s=60))
    await until(lambda: (kept(key) / "out").exists() and (kept(key) / "out").stat().st_size)
    os.kill(int((kept(key) / "started").read_text().split()[0]), signal.SIGKILL)
    outcome = await task
    assert "was ended on" in outcome.unknown
    assert outcome.stdout == "part\n"
    for pid in alive(mark):
        os.kill(pid, signal.SIGKILL)


async def test_a_host_that_was_restarted_meanwhile_is_unknown(
    demo: Host, remote: Remote, key: str, mark: str
) -> None:
    task = asyncio.create_task(remote.change(demo, f"echo part; sleep {mark}", key=key, limit_s=60))
    await until(lambda: (kept(key) / "out").exists() and (kept(key) / "out").stat().st_size)
    started = kept(key) / "started"
    started.write_text(started.read_text().rsplit(" ", 1)[0] + " another-boot\n")
    outcome = await task
    assert "was restarted while" in outcome.unknown
    assert (outcome.exit_status, outcome.stdout) == (None, "part\n")
    for pid in alive(mark):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


async def test_a_daemon_the_change_started_lives_on_and_does_not_hold_us(
    demo: Host, remote: Remote, key: str, mark: str
) -> None:
    outcome = await remote.change(demo, f"(echo up; sleep {mark}; echo late) & sleep .1", key=key, limit_s=20)
    assert (outcome.exit_status, outcome.stdout) == (0, "up\n")
    assert alive(f"sleep {mark}")
    for pid in alive(mark):
        os.kill(pid, signal.SIGKILL)


async def test_much_output_of_a_change_keeps_head_tail_and_count(
    demo: Host, remote: Remote, key: str
) -> None:
    run = "echo first; head -c 5000000 /dev/zero | tr '\\0' x; echo last; printf 'e\\377' >&2"
    outcome = await remote.change(demo, run, key=key, limit_s=20)
    assert outcome.stdout.startswith("first\nxx")
    assert outcome.stdout.endswith("xxlast\n")
    assert (outcome.stdout_bytes, outcome.truncated, outcome.stderr) == (5_000_011, True, "e\ufffd")
    assert "[… 4,744,011 bytes left out …]" in outcome.stdout


async def test_a_folder_of_somebody_else_is_refused(demo: Host, remote: Remote, key: str) -> None:
    """Seen through the script itself: the folder's place is taken by a link."""
    text = detached.launch("echo ran", key=key, limit_s=5)
    trap = f"/tmp/trap-{key}"
    Path(trap).mkdir()
    Path(f"{trap}/.opsthread-{os.getuid()}").symlink_to("/")
    outcome = await remote.run(demo, text.replace("b=/var/tmp;", f"b={trap};"), limit_s=10)
    assert outcome.stdout.startswith("refused ")
    Path(f"{trap}/.opsthread-{os.getuid()}").unlink()
    Path(trap).rmdir()


async def test_progress_of_a_change_counts_its_bytes(demo: Host, key: str) -> None:
    remote, told = Remote(progress_s=0.3, pool=Pool()), list[int]()

    async def progress(seconds: float, size: int) -> None:
        told.append(size)

    await remote.change(demo, "echo 12345; sleep 1.5", key=key, limit_s=20, on_progress=progress)
    await remote.close()
    assert told[-1] == 6
