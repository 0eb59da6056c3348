"""Sizes as programs print them, in one spelling: "15.6 GiB"."""

from __future__ import annotations

import re

_PRINTED = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,3})?) ?([BKMGTP]?)(i?)B?", re.I)
_STEPS = ("KiB", "MiB", "GiB", "TiB")


def human(printed: str) -> str | None:
    """`15Gi`, `49.9G`, `512M` -> "15 GiB"; None for zero and for what is no size."""
    hit = _PRINTED.fullmatch(printed.strip())
    if not hit or not float(hit[1]) or not hit[2]:
        return None
    unit = hit[2].upper()
    return f"{hit[1]} {unit}iB" if unit != "B" else f"{hit[1]} B"


def of_kib(number: str) -> str | None:
    """A number of KiB in the greatest unit that leaves at least 1; None for zero."""
    size = float(number[:18])
    if not size:
        return None
    step = 0
    while size >= 1024 and step < len(_STEPS) - 1:
        size, step = size / 1024, step + 1
    return f"{size:.1f}".removesuffix(".0") + f" {_STEPS[step]}"
