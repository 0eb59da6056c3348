"""`memory …` as a person or another program calls it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner, Result

from bot.cli import memory

Run = Callable[..., Result]
KEYS = [
    "id", "kind", "subject", "attribute", "value", "text", "host", "source", "ref", "created_at", "valid_to",
    "superseded_by",
]  # fmt: skip


@pytest.fixture
def run(database_url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    """Runs a command over the test's database, away from any .env file."""
    monkeypatch.setenv("DATABASE_URL", database_url)
    monkeypatch.chdir(tmp_path)
    app = typer.Typer()
    memory.register(app)

    def invoke(*words: str, stdin: str = "") -> Result:
        return CliRunner().invoke(app, ["memory", *words], input=stdin)

    return invoke


def _json(result: Result) -> list[dict[str, Any]]:
    assert result.exit_code == 0, result.output
    return [json.loads(line) for line in result.stdout.splitlines()]


def _file(*lines: dict[str, Any]) -> str:
    return "\n".join(json.dumps(line, ensure_ascii=False) for line in lines)


FACT = {"kind": "SOFTWARE_FACT", "subject": "nginx on web-1", "attribute": "version", "host": "web-1"}


def test_add_list_recall_and_forget(run: Run) -> None:
    (made,) = _json(run("add", "run commands with sudo", "--json"))
    assert list(made) == KEYS
    assert made["kind"] == "USER_PREFERENCE"
    assert _json(run("list", "--json")) == [made]
    assert _json(run("list", "--user", "u2", "--json")) == []
    (line,) = _json(run("recall", "which commands?", "--limit", "3", "--json"))
    assert list(line) == ["query", "memories"]
    assert [list(one) for one in line["memories"]] == [["id", "kind", "text", "ref", "score"]]
    assert _json(run("recall", "--json"))[0]["memories"][0]["id"] == made["id"]
    assert run("forget", str(made["id"]), "--user", "u2").exit_code == 1
    assert "forgotten" in run("forget", str(made["id"])).stdout
    assert _json(run("list", "--history", "--json")) == _json(run("export")) == []
    assert _json(run("recall", "commands", "--json"))[0]["memories"] == []


def test_every_line_is_kept_under_its_ref_and_again_only_once(run: Run) -> None:
    lines = [{"kind": "TROUBLESHOOTING_CASE", "text": "the same text", "ref": f"r{n}"} for n in range(5)]
    assert _json(run("import", "-", "--json", stdin=_file(*lines))) == [
        {"added": 5, "refreshed": 0, "skipped": 0}
    ]
    assert _json(run("import", "-", "--json", stdin=_file(*lines))) == [
        {"added": 0, "refreshed": 0, "skipped": 5}
    ]
    found = _json(run("recall", "text", "--json"))[0]["memories"]
    assert sorted(one["ref"] for one in found) == ["r0", "r1", "r2", "r3", "r4"]


def test_export_and_import_and_export_are_the_same(run: Run) -> None:
    lines = [
        {**FACT, "value": "1.22", "text": "nginx 1.22", "source": {"line": 3}},
        {**FACT, "value": "1.24", "text": "nginx 1.24", "ref": "b"},
        {"kind": "USER_PREFERENCE", "text": "以后用中文回答", "source": 7},
    ]
    run("import", "-", stdin=_file(*lines))
    out = run("export").stdout
    assert "以后用中文回答" in out
    run("import", "-", "--user", "u2", stdin=out)

    def plain(user: str) -> list[dict[str, Any]]:
        exported = _json(run("export", "--user", user))
        places = {line["id"]: number for number, line in enumerate(exported)}
        return [
            {**line, "id": places[line["id"]], "superseded_by": places.get(line["superseded_by"])}
            for line in exported
        ]

    assert plain("u2") == plain("local")
    assert [line["superseded_by"] for line in plain("u2")] == [1, None, None]
    assert _json(run("import", "-", "--user", "u2", "--json", stdin=out)) == [
        {"added": 0, "refreshed": 0, "skipped": 3}
    ]


def test_secrets_are_taken_out_of_what_is_imported_and_added(run: Run) -> None:
    secret = "password=Zq8vK2mP9xL4"
    run(
        "import",
        "-",
        stdin=_file({"kind": "TROUBLESHOOTING_CASE", "text": f"login with {secret}", "ref": "s"}),
    )
    run("add", f"use {secret} for db-1")
    assert "Zq8vK2mP9xL4" not in run("export").stdout
    assert "redacted" in run("export").stdout


def test_a_file_of_queries_gets_one_line_each(run: Run, tmp_path: Path) -> None:
    run("add", "数据库连接超时要先看防火墙")
    run("add", "nginx 502 means the upstream is gone")
    (tmp_path / "queries").write_text("连接超时\n\nnginx\r\nunknown\n", encoding="utf-8")
    lines = _json(run("recall", "--queries", "queries", "--limit", "1"))
    assert [(line["query"], len(line["memories"])) for line in lines] == [
        ("连接超时", 1), ("", 0), ("nginx", 1), ("unknown", 0),
    ]  # fmt: skip


def test_opting_out_is_said_when_something_is_added(run: Run) -> None:
    assert run("opt-out").stdout == "memory is off for local\n"
    assert "wants no memories kept" in str(run("add", "x").exception)
    run("opt-out", "--undo")
    assert run("add", "x").exit_code == 0


@pytest.mark.parametrize(
    ("words", "stdin", "what"),
    [
        (["add", "x", "--kind", "WISH"], "", "it is one of USER_PREFERENCE"),
        (["recall", "x", "--queries", "y"], "", "give either the TEXT"),
        (["recall", "--queries", "absent"], "", "absent cannot be read"),
        (["forget", "9"], "", "local has no memory 9"),
        (["import", "-"], "{", "line 1: this is not JSON"),
        (["import", "-"], '{"kind": "WISH", "text": "x"}', "line 1: unknown kind 'WISH'"),
        (["import", "-"], '\n{"kind": "USER_PREFERENCE"}', "line 2: a memory needs a text"),
        (["import", "-"], '{"kind": "USER_PREFERENCE", "text": "x", "host": []}', "host is not a text"),
        (["import", "-"], '{"kind": "USER_PREFERENCE", "text": "x", "created_at": "soon"}', "is not a time"),
    ],
)
def test_an_error_is_one_clear_line(run: Run, words: list[str], stdin: str, what: str) -> None:
    result = run(*words, stdin=stdin)
    assert result.exit_code == 1
    assert what in str(result.exception)
    assert "\n" not in str(result.exception)
