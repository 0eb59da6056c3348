"""Commands a second through the gate, and what it lets run, over lists of commands in a folder.

Times are of this thread's CPU, so that a busy machine does not count as a slow gate.
"""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from pathlib import Path

from bench.figures import percentile, table
from bench.gate_worst import LONGEST, worst_commands
from bot.policy.judge import judge
from bot.policy.rules import Rules, load_rules

LISTS = Path(os.environ.get("SHARED", "../shared")) / "policy"


def _best_of_three(command: str, rules: Rules) -> float:
    """Seconds of CPU. The best, as a pass of the garbage collector is no work of the gate's."""
    times = []
    for _ in range(3):
        began = time.thread_time()
        judge(command, rules, host_name="web-1", sudo_allowed=True)
        times.append(time.thread_time() - began)
        if times[-1] < 0.002:
            break
    return min(times)


async def main() -> dict[str, float]:
    """Returns p50 and mean in microseconds and the slowest in milliseconds; nothing when the lists are not there."""
    if not LISTS.is_dir():
        print(f"\nThe gate: skipped, {LISTS} is not there (set SHARED to the folder that holds policy/)")
        return {}
    rules = load_rules()
    rows: list[tuple[str, ...]] = [("list", "commands", "allow", "ask", "deny", "allowed")]
    times: list[float] = []
    for name in ("benign", "tricky", "mutating"):
        lines = (LISTS / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
        commands = [json.loads(line)["command"] for line in lines]
        said: Counter[str] = Counter()
        for command in commands:
            began = time.thread_time()
            verdict = judge(command, rules, host_name="web-1", sudo_allowed=False)
            times.append(time.thread_time() - began)
            said[verdict.decision] += 1
        counts = (str(said[word]) for word in ("allow", "ask", "deny"))
        rows.append((name, str(len(commands)), *counts, f"{said['allow'] / len(commands):.1%}"))
    table("The gate", rows)
    p50 = percentile(times, 0.5) * 1e6
    print(
        f"  {len(times) / sum(times):,.0f} commands a second; p50 {p50:.0f} µs,"
        f" p99 {percentile(times, 0.99) * 1e6:.0f} µs, slowest {max(times) * 1e6:.0f} µs"
    )
    slowest, text = 0.0, ""
    for command in worst_commands():
        took = _best_of_three(command, rules)
        if took > slowest:
            slowest, text = took, command
    print(f"  made to be slow, {LONGEST:,} characters: {slowest * 1e3:.1f} ms at most, for {text[:50]!r}…")
    return {
        "gate p50 µs": p50,
        "gate slowest ms": slowest * 1e3,
        "gate µs a command": sum(times) / len(times) * 1e6,
    }
