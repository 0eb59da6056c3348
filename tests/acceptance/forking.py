"""`opsthread` in a process of its own, forked from one that has loaded the program: loading takes seconds each time."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

_FORKS = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload(["tests.acceptance.loaded"])


@dataclass(frozen=True, slots=True)
class Forked:
    """A process just begun: where its words come out, and what it will end with."""

    pid: int
    out: asyncio.StreamReader
    err: asyncio.StreamReader
    status: asyncio.Future[int]


async def fork(words: tuple[str, ...], *, env: Mapping[str, str], cwd: Path, stdin: bytes | None) -> Forked:
    """Begin `opsthread words…` with this environment and nothing else of ours. stdin: None is nothing to read."""
    given, write = _FORKS.Pipe(duplex=False)
    said, out = _FORKS.Pipe(duplex=False)
    told, err = _FORKS.Pipe(duplex=False)
    child = _FORKS.Process(target=_opsthread, args=(words, dict(env), cwd, (given, out, err)))
    await asyncio.to_thread(child.start)  # the first waits until everything is loaded
    for end in (given, out, err):
        end.close()
    os.set_blocking(write.fileno(), False)
    assert os.write(write.fileno(), stdin or b"") == len(stdin or b"")
    write.close()
    assert child.pid
    return Forked(child.pid, await _reader(said), await _reader(told), _status(child))


def _status(child: multiprocessing.context.ForkServerProcess) -> asyncio.Future[int]:
    loop = asyncio.get_running_loop()
    status: asyncio.Future[int] = loop.create_future()

    def ended() -> None:
        loop.remove_reader(child.sentinel)
        child.join()
        assert child.exitcode is not None
        status.set_result(child.exitcode)
        child.close()

    loop.add_reader(child.sentinel, ended)
    return status


async def _reader(end: Connection) -> asyncio.StreamReader:
    stream = asyncio.StreamReader(limit=2**22)
    pipe = os.fdopen(os.dup(end.fileno()), "rb", buffering=0)
    end.close()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(stream), pipe)
    return stream


def _opsthread(
    words: tuple[str, ...], env: dict[str, str], cwd: Path, ends: tuple[Connection, Connection, Connection]
) -> None:
    """In the new process: take its place as if it had been started by these words."""
    from bot.cli.main import main

    for number, end in enumerate(ends):
        os.dup2(end.fileno(), number)
        end.close()
    sys.stdin, sys.stdout = open(0, closefd=False), open(1, "w", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", buffering=1, errors="backslashreplace", closefd=False)  # noqa: SIM115
    os.environ.clear()
    os.environ.update(env)
    os.chdir(cwd)
    sys.argv = ["opsthread", *words]
    main()
