"""The made-up secrets and the harmless lines of secrets.yml and harmless.yml."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import yaml

HERE = Path(__file__).parent


def secrets() -> Iterator[tuple[str, str]]:
    """A secret (the part of it that must not be seen) and a text that holds it."""
    for entry in yaml.safe_load((HERE / "secrets.yml").read_text("utf-8")).values():
        secret = "".join(entry["secret"])
        for line in entry["lines"]:
            yield entry.get("part", secret), line.replace("{s}", secret)


def harmless() -> list[str]:
    groups = yaml.safe_load((HERE / "harmless.yml").read_text("utf-8"))
    return [line for lines in groups.values() for line in lines]
