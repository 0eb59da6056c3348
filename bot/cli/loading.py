"""A block of imports without the garbage collector: what is loaded stays, and looking through it is a tenth of a start."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def loading() -> Iterator[None]:
    """While the block is open, nothing is looked through for what could be thrown away."""
    at_work = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if at_work:
            gc.enable()
