"""Runs every benchmark and holds the figures against what the project promises."""

from __future__ import annotations

import asyncio
import sys

from bench import audit, gate, recall, recall_scale, redact, ssh, turns, wal
from bot import log

PROMISES = {  # ratios of medians of one run; for the gate, its own CPU time
    "wal ratio turn 200": (1.2, "WAL of turn 200 to turn 10"),
    "wal ratio turn 1000": (1.2, "WAL of turn 1,000 to turn 10"),
    "ssh ratio": (3.0, "SSH exec through the executor, its commits apart, to raw asyncssh"),
    "ssh ratio of Remote.run": (3.0, "Remote.run alone to raw asyncssh"),
    "redact ratio": (9.0, "redaction in the worker to one pass of re with four words"),
    "gate p50 µs": (100.0, "µs for half of the commands through the gate"),
    "gate µs a command": (100.0, "µs a command through the gate, which is 10,000 a second"),
    "gate slowest ms": (20.0, "ms for the slowest command of 2,000 characters"),
    "recall p95 ten": (60.0, "ms at p95 for a recall among a person's 10,000 memories of 1,000,000"),
    "recall p95 one": (8.0, "ms at p95 for a recall among a person's 1,000 memories of 1,000,000"),
    "memory write p50": (5.0, "ms for the statements of a memory that is kept"),
    "unrelated injected": (0.05, "share of unrelated questions for which a memory passes the floor"),
    "turn overhead ratio": (3.0, "a turn less model and SSH to its bare statements and calls"),
}
AT_LEAST = {  # shares found among the ten best
    "LoCoMo turn R@10": 0.66,
    "LoCoMo session R@10": 0.91,
    "XQuAD-en hit@10": 0.92,
    "XQuAD-zh hit@10": 0.915,
    "OpsEval Wired hit@10": 0.84,
}
PARTS = {
    "wal": wal,
    "ssh": ssh,
    "turns": turns,
    "audit": audit,
    "gate": gate,
    "redact": redact,
    "recall": recall,
    "recall_scale": recall_scale,
}


def main() -> int:
    """All parts, or those named as arguments. Returns 1 when a promise was missed, 2 for an unknown part."""
    log.configure("console", "error")
    unknown = [name for name in sys.argv[1:] if name not in PARTS]
    if unknown:
        print(f"no benchmark is called {', '.join(unknown)}; there are {', '.join(PARTS)}", file=sys.stderr)
        return 2
    found: dict[str, float] = {}
    for name in sys.argv[1:] or PARTS:
        found |= asyncio.run(PARTS[name].main())
    print("\nPromises")
    missed = 0
    for name, (limit, words) in PROMISES.items():
        if name in found:
            kept = found[name] <= limit
            missed += not kept
            print(f"  {'kept  ' if kept else 'MISSED'}  {words}: {found[name]:.2f} (at most {limit})")
    for name, least in AT_LEAST.items():
        if name in found:
            kept = found[name] >= least
            missed += not kept
            print(f"  {'kept  ' if kept else 'MISSED'}  {name}: {found[name]:.3f} (at least {least})")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
