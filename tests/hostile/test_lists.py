"""Sessions whose titles, authors and words are hostile, as the command line prints them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from bot.cli import approvals, audit, sessions
from tests.hostile.cases import CASES, one_object_a_line, terminal_is_sound


def test_lists_pages_and_exports_print_nothing_that_drives_a_terminal(
    database_url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("DATABASE_URL", database_url)
    monkeypatch.setenv("OPSTHREAD_DATA_DIR", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    app = typer.Typer()
    for part in (sessions, approvals, audit):
        part.register(app)

    def printed(*words: str, stdin: str = "") -> str:
        result = CliRunner().invoke(app, list(words), input=stdin)
        assert result.exit_code == 0, result.output
        return result.stdout

    lines = [
        {"session": f"{n} {case.text}", "seq": seq, "role": role, "author": case.text, "text": case.text}
        for n, case in enumerate(CASES)
        for seq, role in enumerate(("user", "assistant"), start=1)
    ]
    terminal_is_sound(printed("sessions", "import", "-", stdin="\n".join(map(json.dumps, lines))))
    listed = printed("sessions", "list", "--limit", "500")
    terminal_is_sound(listed)
    assert len(listed.splitlines()) == len(CASES)
    for words in (("sessions", "list", "--limit", "500"), ("sessions", "show", "1"), ("audit", "list")):
        one_object_a_line(printed(*words, "--json"))
    for number in range(1, len(CASES) + 1, 6):
        terminal_is_sound(printed("sessions", "show", str(number)))
        terminal_is_sound(printed("sessions", "export", str(number), "--markdown"))
        exported = one_object_a_line(printed("sessions", "export", str(number)))
        assert [line["text"] for line in exported] == [CASES[number - 1].text] * 2
    terminal_is_sound(printed("audit", "list"))
    terminal_is_sound(printed("approvals", "list"))
