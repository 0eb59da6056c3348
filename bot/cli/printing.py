"""Records on stdout: JSON lines, a table on a terminal, tab-separated text in a pipe."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from typing import Any, TextIO

from rich.table import Table
from rich.text import Text

from bot.terminal.json_lines import escaped
from bot.terminal.safe_text import harmless, one_line
from bot.terminal.screen import make_console
from bot.terminal.streams import lenient, utf8


def json_lines(records: Iterable[dict[str, Any]]) -> None:
    """One object a line, in UTF-8 whatever the locale says."""
    utf8(sys.stdout)
    for record in records:
        json_line(record)


def json_line(record: dict[str, Any]) -> None:
    """One object, where stdout is known to be UTF-8."""
    sys.stdout.write(escaped(json.dumps(record, ensure_ascii=False, separators=(", ", ": "))) + "\n")


def table(columns: Sequence[str], rows: Sequence[Sequence[object]], *, empty: str) -> None:
    """Rows for a person; in a pipe without a header, one a line. empty: said when there are none."""
    if not sys.stdout.isatty():
        lenient(sys.stdout)
        for row in rows:
            sys.stdout.write("\t".join(one_line(str(cell)) for cell in row) + "\n")
        return
    console = make_console(sys.stdout)
    if not rows:
        console.print(empty)
        return
    drawn = Table(box=None, header_style="bold", pad_edge=False)
    for column in columns:
        drawn.add_column(column, overflow="fold")
    for row in rows:
        drawn.add_row(*(Text(one_line(str(cell))) for cell in row))
    console.print(drawn)


def say(words: str) -> None:
    """Text for a person; what it quotes cannot drive the terminal."""
    lenient(sys.stdout)
    sys.stdout.write(harmless(words).rstrip("\n") + "\n")


def raw(stream: TextIO, words: str) -> None:
    """Kept output as it was, for a pipe; on a terminal without what could drive it."""
    lenient(stream)
    stream.write(harmless(words) if stream.isatty() else words)
