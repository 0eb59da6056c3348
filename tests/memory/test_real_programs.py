"""Extraction from what the programs of this machine really print, held against its package manager and /proc."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from bot.memory import Found, Heard, extract
from storage.records import Role

# (command as the gate renders it, attribute, package that holds the program)
PROGRAMS = [
    ("'python3' -V", "python version", ""),
    ("'bash' --version", "bash version", "bash"),
    ("'openssl' version", "openssl version", "openssl"),
    ("'ssh' -V", "openssh version", "openssh-client"),
    ("'git' --version", "git version", "git"),
    ("'curl' --version", "curl version", "curl"),
    ("'systemctl' --version", "systemd version", "systemd"),
    ("'perl' -v", "perl version", "perl-base"),
    ("'tar' --version", "tar version", "tar"),
    ("'make' --version", "make version", "make"),
    ("'grep' --version", "grep version", "grep"),
    ("'sed' --version", "sed version", "sed"),
    ("'vim' --version", "vim version", "vim"),
    ("'tmux' -V", "tmux version", "tmux"),
    ("'ip' -V", "iproute2 version", "iproute2"),
    ("'sqlite3' --version", "sqlite version", "sqlite3"),
    ("'cmake' --version", "cmake version", "cmake"),
    ("'psql' --version", "psql version", ""),
    ("'gcc' --version", "gcc version", ""),
    ("'node' -v", "node version", ""),
    ("'npm' -v", "npm version", ""),
    ("'java' -version", "java version", ""),
]


def ran(command: str) -> list[Found]:
    """What is found in the output of a command, run here."""
    done = subprocess.run(
        ["sh", "-c", command],
        capture_output=True,
        text=True,
        env={**os.environ, "LC_ALL": "C.UTF-8"},
        check=False,
    )
    text = done.stdout + done.stderr
    return list(extract([Heard(Role.TOOL, text, host="here", command=command, exit_status=done.returncode)]))


@pytest.mark.parametrize(("command", "attribute", "package"), PROGRAMS)
def test_a_program_s_version_is_the_package_manager_s(command: str, attribute: str, package: str) -> None:
    program = command.split("'")[1]
    path = shutil.which(program)
    if path is None:
        pytest.skip(f"{program} is not on this machine")
    found = [f for f in ran(command) if f.attribute == attribute]
    assert len(found) == 1, f"{command} gave nothing for {attribute}"
    if not package or shutil.which("dpkg-query") is None or not path.startswith(("/usr/bin", "/bin")):
        return
    asked = subprocess.run(
        ["dpkg-query", "-W", "-f", "${Version}", package], capture_output=True, text=True, check=False
    )
    if asked.returncode == 0:
        packaged = re.sub(r"^[0-9]+:", "", asked.stdout)
        assert (
            packaged.startswith((found[0].value, found[0].value.replace("p", ".")))
            or found[0].value in packaged
        ), f"{command}: {found[0].value}, the package says {packaged}"


def test_a_listing_of_packages_and_the_program_itself_are_one_fact() -> None:
    if shutil.which("dpkg") is None:
        pytest.skip("no dpkg on this machine")
    found = [f for f in ran("'dpkg' -l bash") if f.attribute == "bash version"]
    version = subprocess.run(
        ["dpkg-query", "-W", "-f", "${Version}", "bash"], capture_output=True, text=True, check=True
    ).stdout
    assert found
    assert version.startswith(found[0].value)


def test_facts_of_the_machine_are_those_of_proc_and_os_release() -> None:
    def one(command: str, attribute: str) -> str:
        return next(f.value for f in ran(command) if f.attribute == attribute)

    release = Path("/etc/os-release")
    if not release.exists() or not Path("/proc/meminfo").exists():
        pytest.skip("not a Linux with os-release")
    pretty = re.search(r'^PRETTY_NAME="?([^"\n]+)', release.read_text(), re.M)
    assert pretty
    assert one("'cat' /etc/os-release", "operating system") == pretty[1]
    assert one("'uname' -r", "kernel") == platform.release()
    assert one("'uname' -a", "kernel") == platform.release()
    assert one("'uname' -m", "architecture") == platform.machine()
    total = int(re.search(r"MemTotal: +(\d+)", Path("/proc/meminfo").read_text())[1])  # type: ignore[index]
    assert one("'cat' /proc/meminfo", "memory size") == one("'free'", "memory size")
    assert float(one("'free'", "memory size").split()[0]) == pytest.approx(total / 1024**2, abs=0.06)
    processors = Path("/proc/cpuinfo").read_text().count("\nprocessor") + 1
    assert one("'cat' /proc/cpuinfo", "CPU count") == str(processors)
    if shutil.which("nproc"):
        online = subprocess.run(["nproc"], capture_output=True, text=True, check=True).stdout.strip()
        assert one("'nproc'", "CPU count") == online
