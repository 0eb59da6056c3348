"""Small things the benchmarks share: percentiles, tables, and clocks around methods."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any


def percentile(values: Sequence[float], share: float) -> float:
    """The value below which `share` of all lie; nearest rank."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


def p50_p99(values: Sequence[float]) -> str:
    """Milliseconds, from seconds."""
    return f"{percentile(values, 0.5) * 1000:.2f} / {percentile(values, 0.99) * 1000:.2f} ms"


def table(title: str, rows: Sequence[tuple[str, ...]]) -> None:
    """Print a table; the first row is its head."""
    widths = [max(len(row[n]) for row in rows) for n in range(len(rows[0]))]
    print(f"\n{title}")
    for number, row in enumerate(rows):
        print("  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
        if not number:
            print("  " + "  ".join("-" * width for width in widths))


class Clock:
    """Seconds spent inside wrapped coroutines; parallel ones count once (the union of their spans)."""

    def __init__(self) -> None:
        self.spent = 0.0
        self._open = 0
        self._since = 0.0

    @contextmanager
    def on(self, *methods: tuple[type, str]) -> Iterator[None]:
        """Time these methods of our own parts while the block is open."""
        plain = [(owner, name, getattr(owner, name)) for owner, name in methods]
        for owner, name, method in plain:
            setattr(owner, name, self._timed(method))
        try:
            yield
        finally:
            for owner, name, method in plain:
                setattr(owner, name, method)

    def _timed(self, method: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        async def call(*args: Any, **kwargs: Any) -> Any:
            if not self._open:
                self._since = time.perf_counter()
            self._open += 1
            try:
                return await method(*args, **kwargs)
            finally:
                self._open -= 1
                if not self._open:
                    self.spent += time.perf_counter() - self._since

        return call

    def take(self) -> float:
        """The seconds since the last take."""
        spent, self.spent = self.spent, 0.0
        return spent
