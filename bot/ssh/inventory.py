"""hosts.yml, read whole or not at all: every fault is reported with its file and line; changes are followed."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

from bot import log
from bot.errors import InventoryError
from bot.ssh.hosts_file import parse
from bot.ssh.records import AccessRule, Host, Inventory

__all__ = ["ANY_TEAM", "AccessRule", "Host", "Inventories", "Inventory", "LiveInventory", "load"]

ANY_TEAM = ""  # the key under which a single file serves every team
POLL_S = 2.0
Stamp = tuple[tuple[str, int, int, int], ...]


@dataclass(frozen=True, slots=True)
class Inventories:
    """Every team's inventory. A single file serves every team; of a folder, the file named as the team."""

    by_team: dict[str, Inventory] = field(hash=False)

    def for_team(self, team: str) -> Inventory:
        """The team's own; a team that has no file has no hosts."""
        if ANY_TEAM in self.by_team:
            return self.by_team[ANY_TEAM]
        return self.by_team.get(team, Inventory())

    @property
    def teams(self) -> tuple[str, ...]:
        """The teams that have a file of their own; none where one file serves all."""
        return tuple(sorted(team for team in self.by_team if team != ANY_TEAM))

    @property
    def all(self) -> tuple[Inventory, ...]:
        """Every inventory there is, in the order of the teams."""
        return tuple(self.by_team[team] for team in sorted(self.by_team))


def load(path: Path, *, check_files: bool = True) -> Inventories:
    """Read hosts.yml or a folder of them. Raises InventoryError that names every fault with file and line.

    check_files: also demand that the identity files exist; commands that never connect leave it out.
    """
    faults: list[str] = []
    found: dict[str, Inventory] = {}
    for team, file in sources(path):
        if team in found:
            faults.append(f"{file}: team {team} has a second file; keep one")
            continue
        try:
            text = file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            faults.append(f"{file}: cannot be read ({getattr(error, 'strerror', None) or 'not UTF-8'})")
            continue
        inventory, wrong = parse(text, file, check_files=check_files)
        faults += wrong
        found[team] = inventory
    if faults:
        raise InventoryError("; ".join(faults))
    return Inventories(found)


def sources(path: Path) -> list[tuple[str, Path]]:
    """(team, file) of every file to read; raises InventoryError when there is none."""
    if not path.is_dir():
        if not path.exists():
            raise InventoryError(f"{path} does not exist; `opsthread init` writes a sample")
        return [(ANY_TEAM, path)]
    files = sorted(p for p in path.iterdir() if p.suffix in {".yml", ".yaml"} and not p.name.startswith("."))
    if not files:
        raise InventoryError(f"{path} holds no .yml file; it needs one a team, named as the team's id")
    return [(file.stem, file) for file in files]


class LiveInventory:
    """`current` is always one whole, valid reading. Reload on SIGHUP or when the files have changed.

    on_reload is told each outcome: "" when a new reading was taken, else why the old one was kept. It must
    not raise.
    Raises InventoryError when the first reading has faults: the program must not start with them.
    """

    def __init__(
        self, path: Path, on_reload: Callable[[str], Awaitable[None]] | None = None, *, poll_s: float = POLL_S
    ) -> None:
        self.path = path
        self._on_reload = on_reload
        self._poll_s = poll_s
        self._seen = _stamp(path)
        self._current = load(path)
        self._hup = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._log = log.get("inventory")

    @property
    def current(self) -> Inventories:
        """The last reading without faults. Take it once a decision, so that both halves agree."""
        return self._current

    async def start(self) -> None:
        """Begin to watch, and to listen for SIGHUP where this is the main thread."""
        with contextlib.suppress(ValueError, RuntimeError, NotImplementedError):
            asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, self._hup.set)
        self._task = asyncio.create_task(self._watch(), name="inventory")

    async def close(self) -> None:
        """Stop watching."""
        if self._task is None:
            return
        self._task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._task
        self._task = None
        with contextlib.suppress(ValueError, RuntimeError, NotImplementedError):
            asyncio.get_running_loop().remove_signal_handler(signal.SIGHUP)

    async def reload(self) -> bool:
        """Read again now. False: it has faults (they are in the log), the old reading stays."""
        try:
            stamp = await asyncio.to_thread(_stamp, self.path)
            new = await asyncio.to_thread(load, self.path)
            if await asyncio.to_thread(_stamp, self.path) != stamp:
                raise InventoryError(f"{self.path} changed while it was read; it will be read again")
        except InventoryError as error:
            self._log.error("inventory kept", fault=str(error))
            await self._tell(str(error))
            return False
        self._seen, self._current = stamp, new
        self._log.info("inventory reloaded", hosts=sum(len(each.hosts) for each in new.all))
        await self._tell("")
        return True

    async def _tell(self, fault: str) -> None:
        if self._on_reload is not None:
            await self._on_reload(fault)

    async def _watch(self) -> None:
        last = self._seen
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._poll_s):
                    await self._hup.wait()
            stamp = await asyncio.to_thread(_stamp, self.path)
            # An editor may be in the middle of writing: a cut file can be valid and grant less or more.
            # So a change counts once it has stood still for one poll; SIGHUP says that it is finished.
            settled = stamp != self._seen and stamp == last
            last = stamp
            if self._hup.is_set() or settled:
                self._hup.clear()
                self._seen = stamp  # a faulty reading is reported once, not every two seconds
                await self.reload()


def _stamp(path: Path) -> Stamp:
    try:
        stats = [(str(file), file.stat()) for _, file in sources(path)]
    except (OSError, InventoryError):
        return ()
    return tuple((name, stat.st_mtime_ns, stat.st_size, stat.st_ino) for name, stat in stats)
