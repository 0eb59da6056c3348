"""Redaction of ten million characters of log lines in the worker, and how long it keeps the event loop from anything.

The lines are those of a folder of logs when it is there, made-up ones otherwise; one line in a thousand holds
a made-up secret. The baseline is one pass of `re` over the same text with a pattern of four words.
"""

from __future__ import annotations

import asyncio
import os
import re
import time
from pathlib import Path

from bench.figures import percentile, table
from bot.redact import RedactionWorker, load_redactor

LOGS = Path(os.environ.get("SHARED", "../shared")) / "logs"
SIZE = 10_000_000  # characters
ROUNDS = 5
_WORDS = re.compile("password|secret|token|authorization")
_MADE_UP = (
    "Dec 10 06:55:46 web-1 sshd[24200]: Failed password for invalid user admin from 10.0.0.7 port 22 ssh2",
    "2026-11-02 10:00:00.008 25746 INFO api.wsgi [req-38101a0b-2096-447d-96ea-a692162415ae - -] 10.0.0.1 200 len: 1893",
    "081109 203615 148 INFO dfs.DataNode$PacketResponder: PacketResponder 1 for block blk_38865049064139660 ending",
    "[Sun Dec 04 04:47:44 2025] [error] mod_jk child workerEnv in error state 6",
)


async def main() -> dict[str, float]:
    """Returns seconds of one text in the worker, the longest hold of the loop, and the ratio to the baseline."""
    text = _text()
    worker = RedactionWorker(load_redactor())
    try:
        await worker.text(text[:100_000])  # starts the process
        took, lags, base, found = [], [], [], 0
        for _ in range(ROUNDS):
            began = time.perf_counter()
            _WORDS.findall(text)
            base.append(time.perf_counter() - began)
            watch = asyncio.create_task(_lags())
            began = time.perf_counter()
            found = len((await worker.text(text)).found)
            took.append(time.perf_counter() - began)
            watch.cancel()
            lags += await watch
    finally:
        await worker.aclose()
    began = time.thread_time()
    worker.redactor.text(text)
    cpu = time.thread_time() - began
    middle, ground = percentile(took, 0.5), percentile(base, 0.5)
    rows = [
        ("what", "p50", "least", "most"),
        ("10 million characters through the worker", *(_s(x) for x in (middle, min(took), max(took)))),
        ("one pass of re with four words, here", *(_s(x) for x in (ground, min(base), max(base)))),
        ("event loop held meanwhile", *(_s(x) for x in (percentile(lags, 0.5), min(lags), max(lags)))),
    ]
    table("Redaction", rows)
    print(
        f"  {SIZE / middle / 1e6:.1f} million characters a second, {found} secrets in each text;"
        f" {_s(cpu)} of CPU without the pipe; the loop was held {_s(percentile(lags, 0.99))} at p99"
    )
    return {"redact s": middle, "redact ratio": middle / ground, "redact lag ms": max(lags) * 1000}


def _text() -> str:
    logs = sorted(LOGS.glob("*.log")) if LOGS.is_dir() else []
    lines = [line for log in logs for line in log.read_text("utf-8", "replace").splitlines()] or list(
        _MADE_UP
    )
    out, size = [], 0
    while size < SIZE:
        line = lines[len(out) % len(lines)]
        out.append(f"{line} password=made-up-{len(out)}" if len(out) % 1000 == 999 else line)
        size += len(out[-1]) + 1
    return "\n".join(out)[:SIZE]


async def _lags() -> list[float]:
    """How much longer than a millisecond each sleep of one takes, until cancelled."""
    lags = []
    try:
        while True:
            began = time.perf_counter()
            await asyncio.sleep(0.001)
            lags.append(max(time.perf_counter() - began - 0.001, 0.0))
    except asyncio.CancelledError:
        return lags


def _s(seconds: float) -> str:
    return f"{seconds * 1000:.1f} ms"
