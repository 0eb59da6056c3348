"""A command that runs until it is ended, and can be told from those of tests that run beside this one."""

from __future__ import annotations

import os

import psutil

_TAIL = ["tail", "-n", str(os.getpid()), "-f", "/etc/os-release"]  # the number is this test process's own
FOLLOW = f"timeout 50 {' '.join(_TAIL)}"


def following() -> list[psutil.Process]:
    """Where FOLLOW runs on this machine now."""
    return [process for process in psutil.process_iter(["cmdline"]) if process.info["cmdline"] == _TAIL]
