"""Every example that the table lets run by itself, run for real: it opens nothing for writing and changes nothing."""

from __future__ import annotations

import os
import re
import shutil
from concurrent.futures import ThreadPoolExecutor

import pytest

from bot.policy.judge import judge
from bot.policy.lexer import lex
from bot.policy.rules import load_rules, packaged_examples
from tests.policy.strace import Traced, missing, trace

FOLDERS = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
BUILTINS = frozenset({"echo", "printf", "test", "true", "false", "type", "command", "ulimit", "umask", "pwd"})
# What a program does beside reading: patterns over the lines of strace, each with why it changes nothing of the host.
KNOWN = {
    "top": [(r'mkdir\("/nonexistent/', "makes a folder for its settings in HOME, which is nowhere")],
    "apt": [(r'openat\(AT_FDCWD, "/tmp", O_RDWR\|O_EXCL\|O_CLOEXEC\|O_TMPFILE', "a buffer that has no name")],
    "apt-cache": [(r'openat\(AT_FDCWD, "/tmp", O_RDWR\|O_EXCL\|O_CLOEXEC\|O_TMPFILE', "a buffer that has no name")],
    "apt-mark": [(r'openat\(AT_FDCWD, "/tmp", O_RDWR\|O_EXCL\|O_CLOEXEC\|O_TMPFILE', "a buffer that has no name")],
    "dmsetup": [(r'mk(?:dir|nodat?)\(.*"/dev(?:/mapper(?:/control)?)?"', "the kernel's own node, where udev has not made it")],
    "java": [(r'openat\(AT_FDCWD, "/proc/self/coredump_filter"', "a setting of its own process")],
    "sort": [(r'(?:openat|unlink)\w*\(.*"/(?:tmp|var/tmp)/sort\w+"', "what does not fit into memory")],
    "tac": [(r'(?:openat|unlink)\w*\(.*"/tmp/tac\w+"', "a pipe that is to be read backwards")],
}  # fmt: skip
# Where any program may connect: the machine's own name service, systemd and its bus, which check rights themselves.
ANYWHERE = r"unix:/(?:var/)?run/(?:nscd/socket|systemd/(?:private|userdb/.*|resolve/.*|notify|journal/.*)|dbus/system_bus_socket)"
DNS = r".*:53|\S+:0"
SERVICE = {
    "curl": r"(?:127\.0\.0\.1|::1):\d+",
    "kubectl": r"(?:127\.0\.0\.1|::1):\d+",
    "helm": r"(?:127\.0\.0\.1|::1):\d+",
    "redis-cli": r"(?:127\.0\.0\.1|::1):\d+",
    "nc": r"(?:127\.0\.0\.1|::1):\d+",
    "ping": r"(?:127\.0\.0\.1|::1):\d+",
    "traceroute": r"(?:127\.0\.0\.1|::1):\d+",
    "docker": r"unix:/(?:var/)?run/docker\.sock",
    "psql": r"unix:/(?:var/run|tmp)/.*\.s\.PGSQL\.\d+|(?:127\.0\.0\.1|::1):5432",
    "pg_isready": r"unix:/(?:var/run|tmp)/.*\.s\.PGSQL\.\d+|(?:127\.0\.0\.1|::1):5432",
    "mysql": r"unix:/.*mysqld?\.sock|(?:127\.0\.0\.1|::1):3306",
    "mysqladmin": r"unix:/.*mysqld?\.sock|(?:127\.0\.0\.1|::1):3306",
    "sshd": r"(?:::|0\.0\.0\.0):22|connect\(\d+, \{sa_family=AF_UNSPEC.*",
}  # fmt: skip


def examples() -> list[str]:
    """The text that would run for every example whose programs are here; names of targets are this machine."""
    rules, found = load_rules(), dict[str, None]()
    for _, wanted, command in packaged_examples():
        if wanted:
            run = judge(
                command, rules, host_name="h", sudo_allowed=True, targets=("*.example.com", "10.0.0.0/8")
            ).run
            assert run is not None
            run = run.replace("'sudo' -n ", "")
            found[re.sub(r"[a-z0-9]+\.example\.com", "localhost", run)] = None
    return [run for run in found if all(_here(name) for name in _programs(run))]


def _programs(run: str) -> list[str]:
    stages = [[word.text for word in stage.words] for stage in lex(run).stages]
    return [words[2] if words[0] == "timeout" else words[0] for words in stages]


def _here(name: str) -> bool:
    return name in BUILTINS or shutil.which(name, path=FOLDERS) is not None


def wrong(run: str, done: Traced) -> list[str]:
    """What a run did that neither a read does nor the lists above explain."""
    names = {name.rpartition("/")[2] for name in _programs(run)}
    known = [pattern for name in names for pattern, _ in KNOWN.get(name, ())]
    talks = "|".join([ANYWHERE, DNS, *(SERVICE[name] for name in names if name in SERVICE)])
    deeds = [deed for deed in done.deeds if not any(re.match(pattern, deed) for pattern in known)]
    return deeds + [f"connects to {place}" for place in done.connects if not re.fullmatch(talks, place)]


@pytest.fixture(scope="module")
def strace() -> None:
    if reason := missing():
        if os.environ.get("TEST_FULL") == "1":
            pytest.fail(f"TEST_FULL=1, but {reason}")
        pytest.skip(f"SKIPPED: {reason}; no example of the table was run for real")


@pytest.mark.usefixtures("strace")
@pytest.mark.parametrize(
    ("run", "deed"),
    [
        ("echo x > /tmp/opsthread-$$ ; rm /tmp/opsthread-$$", "openat"),
        ("/bin/mkdir /nonexistent/x", "mkdir"),
        ("/bin/chmod 600 /etc/hosts", "chmod"),
        ("/bin/mv /etc/hosts /etc/hosts.old", "rename"),
        ("/bin/rm /etc/hosts", "unlink"),
        ("/bin/ln -s /a /etc/b", "symlink"),
        ("/bin/sh -c 'kill -9 1'", "kill"),
        ("/usr/bin/touch /etc/hosts", "open"),
        ("/bin/cp /etc/hosts /etc/hosts2", "open"),
        ("/bin/sh -c 'exec 3<>/etc/hosts'", "open"),
    ],
)
def test_the_watch_sees_what_changes_something(run: str, deed: str) -> None:
    assert any(deed in found for found in trace(run).deeds)


@pytest.mark.usefixtures("strace")
def test_every_example_that_can_run_here_only_reads() -> None:
    runs = examples()
    assert len(runs) > 40  # on the barest machine there are coreutils, procps and grep
    with ThreadPoolExecutor(8) as pool:
        done = list(pool.map(trace, runs))
    assert all(found.started for found in done)
    faults = {run: said for run, found in zip(runs, done, strict=True) if (said := wrong(run, found))}
    assert not faults, "\n".join(f"{run}: {said}" for run, said in faults.items())
    print(f"{len(runs)} examples were run under strace")
