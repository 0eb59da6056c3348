"""Runs every benchmark and holds the figures against what the project promises."""

from __future__ import annotations

import asyncio
import sys

from bench import gate, ssh, turns, wal
from bot import log

PROMISES = {
    "wal ratio turn 200": 1.2,
    "wal ratio turn 1000": 1.2,
    "ssh ratio": 3.0,
    "turn overhead ratio": 3.0,
}


NAMES = ("wal", "ssh", "turns", "gate")  # one or more of them as arguments: only these


def main() -> int:
    log.configure("console", "error")
    found: dict[str, float] = {}
    chosen = [
        part for part in (wal, ssh, turns, gate) if part.__name__.split(".")[1] in (sys.argv[1:] or NAMES)
    ]
    for part in chosen:
        found |= asyncio.run(part.main())
    print("\nPromises")
    missed = 0
    for name, limit in ((n, limit) for n, limit in PROMISES.items() if n in found):
        kept = found[name] <= limit
        missed += not kept
        print(f"  {'kept  ' if kept else 'MISSED'}  {name}: {found[name]:.2f} (at most {limit})")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
