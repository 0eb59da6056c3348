"""`audit list`, `audit export` and `audit verify` as a person or another program calls them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psycopg
import pytest
import typer
from typer.testing import CliRunner, Result

from bot.account import os_account
from bot.audit.sealer import Sealer
from bot.audit.signing import Signer
from bot.cli import audit as cli
from bot.cli import sessions
from bot.cli.audit import moment
from bot.errors import UsageError
from storage import audit
from storage.store import Store
from tests import make
from tests.audit.conftest import SECRET, filled

Run = Callable[..., Result]
ME = f"local:{os_account()}"


@pytest.fixture
def run(database_url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    """Runs a command over the test's database, with a key and a sink."""
    monkeypatch.setenv("DATABASE_URL", database_url)
    monkeypatch.setenv("OPSTHREAD_SECRET_KEY", SECRET)
    monkeypatch.setenv("OPSTHREAD_AUDIT_SINK", str(tmp_path / "heads.jsonl"))
    monkeypatch.chdir(tmp_path)
    app = typer.Typer()
    cli.register(app)
    sessions.register(app)

    def invoke(*words: str, stdin: str = "", code: int = 0) -> Result:
        result = CliRunner().invoke(app, list(words), input=stdin)
        assert result.exit_code == code, result.output + str(result.exception)
        return result

    return invoke


@pytest.fixture
def log(database_url: str) -> None:
    """Three events of two people on two hosts."""

    async def fill() -> None:
        store = Store(database_url)
        await filled(store, 2)
        async with store.begin() as db:
            await audit.add(
                db,
                "approval.denied",
                team=make.TEAM,
                person="U02BOB",
                session_id=7,
                host="db-1",
                detail={"run": "reboot \x1b[2J", "said": ""},
            )
        await store.close()

    asyncio.run(fill())


def _json(result: Result) -> list[dict[str, Any]]:
    return [json.loads(line) for line in result.stdout.splitlines()]


def test_list_is_newest_first_and_filtered(log: None, run: Run) -> None:
    lines = _json(run("audit", "list", "--json"))
    assert [line["id"] for line in lines] == [3, 2, 1]
    assert list(lines[0]) == [
        "id", "at", "event", "team", "person", "os_account", "session", "turn", "host", "detail", "salt",
        "erased_at", "link", "payload_digest", "digest", "hash",
    ]  # fmt: skip
    for words, ids in [
        (["--session", "7"], [3]),
        (["--person", make.ALICE], [2, 1]),
        (["--host", "db-1"], [3]),
        (["--event", "command.started"], [2, 1]),
        (["--event", "approval."], [3]),
        (["--limit", "1"], [3]),
        (["--since", "1h"], [3, 2, 1]),
        (["--since", "2999-01-01"], []),
        (["--session", "7", "--person", make.ALICE], []),
    ]:
        assert [line["id"] for line in _json(run("audit", "list", "--json", *words))] == ids, words
    plain = run("audit", "list").stdout
    assert "df -h /1 · n 1.5" in plain
    assert "\x1b" not in plain


def test_since_is_a_time_or_a_while() -> None:
    now = datetime(2026, 5, 1, 12, 0, tzinfo=UTC)
    assert moment("30m", now=now) == datetime(2026, 5, 1, 11, 30, tzinfo=UTC)
    assert moment("7d", now=now) == datetime(2026, 4, 24, 12, 0, tzinfo=UTC)
    assert moment("2026-05-01", now=now) == datetime(2026, 5, 1, tzinfo=UTC)
    assert moment("2026-05-01T12:00+02:00", now=now) == datetime(2026, 5, 1, 10, 0, tzinfo=UTC)
    for words in ("yesterday", "999999d", "-1h", ""):
        with pytest.raises(UsageError, match="it is a time such as"):
            moment(words, now=now)


def test_verify_says_that_it_is_whole_and_what_is_not_sealed(log: None, run: Run) -> None:
    (report,) = _json(run("audit", "verify", "--json"))
    assert (report["whole"], report["rows"], report["unsealed"], report["signature"]) == (True, 0, 3, "none")
    said = run("audit", "verify").stdout
    assert "The chain is whole." in said
    assert "not sealed yet: 3 rows" in said


def test_an_export_is_verified_without_a_database(
    log: None, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, database_url: str
) -> None:
    text = run("audit", "export").stdout
    lines = [json.loads(line) for line in text.splitlines()]
    assert [line["record"] for line in lines] == ["export", "row", "row", "row", "row", "head"]
    assert (lines[0]["link"], lines[-1]["link"]) == (4, 4)
    assert (lines[4]["event"], lines[4]["person"]) == ("audit.exported", ME), "it is in itself"
    (report,) = _json(run("audit", "verify", "--json"))
    assert (report["whole"], report["link"], report["signature"]) == (True, 4, "valid")

    monkeypatch.setenv("DATABASE_URL", "postgresql://nobody@127.0.0.1:1/none")
    (tmp_path / "log.jsonl").write_text(text, encoding="utf-8")
    (report,) = _json(run("audit", "verify", "--file", "log.jsonl", "--json"))
    assert (report["whole"], report["rows"], report["signature"]) == (True, 4, "valid")
    (report,) = _json(run("audit", "verify", "--file", "-", "--json", stdin=text))
    assert report["whole"]

    monkeypatch.delenv("OPSTHREAD_SECRET_KEY")
    public = Signer(SECRET).public
    (report,) = _json(run("audit", "verify", "--file", "log.jsonl", "--json"))
    assert (report["whole"], report["signature"], report["head"]["key"]) == (True, "unchecked", public)
    assert (
        f"signature valid, {public}" in run("audit", "verify", "--file", "log.jsonl", "--key", public).stdout
    )
    other = Signer("another").public
    (report,) = _json(run("audit", "verify", "--file", "log.jsonl", "--json", "--key", other, code=1))
    assert (report["fault"]["kind"], report["fault"]["link"]) == ("signature", 4)


@pytest.mark.parametrize(
    ("change", "kind", "link"),
    [
        (lambda lines: [line.replace("df -h /1", "ls") for line in lines], "payload", 2),
        (lambda lines: [line.replace("db-1", "db-2") for line in lines], "row", 3),
        (lambda lines: lines[:2] + lines[3:], "missing", 2),
        (lambda lines: lines[:3], "tail", 3),
        (lambda lines: [lines[0], lines[1], lines[3], lines[2], *lines[4:]], "missing", 2),
        (lambda lines: [*lines[:3], lines[2], *lines[3:]], "double", 2),
    ],
)
def test_a_changed_export_is_named(
    log: None, run: Run, change: Callable[[list[str]], list[str]], kind: str, link: int
) -> None:
    lines = run("audit", "export").stdout.splitlines(keepends=True)
    (report,) = _json(run("audit", "verify", "--file", "-", "--json", stdin="".join(change(lines)), code=1))
    assert (report["fault"]["kind"], report["fault"]["link"]) == (kind, link)


def test_a_broken_chain_is_exit_1_and_one_line_says_where(log: None, run: Run, database_url: str) -> None:
    run("audit", "export")
    with psycopg.connect(database_url) as admin:
        admin.execute("ALTER TABLE audit DISABLE TRIGGER ALL")
        admin.execute("UPDATE audit SET detail = '{}' WHERE id = 2")
    said = run("audit", "verify", code=1).stdout
    assert said.startswith("BROKEN at link 2 (payload): row 2: its person, account or detail was changed")
    assert "sound before it: 1 rows" in said
    (report,) = _json(run("audit", "verify", "--json", code=1))
    assert report["fault"]["row"] == 2


@pytest.mark.parametrize(
    ("words", "stdin", "what"),
    [
        (["verify", "--file", "absent"], "", "--file absent cannot be read"),
        (["verify", "--file", "-"], "nothing\n", "line 1 cannot be read"),
        (
            ["verify", "--file", "-"],
            '{"record": "row", "id": true}\n',
            '"id" is missing or not what it must be',
        ),
        (["verify", "--file", "-"], "[" * 100_000, "line 1 cannot be read"),
        (["verify", "--key", "ed25519:AA"], "", "it is a public key as"),
        (["list", "--since", "soon"], "", "it is a time such as"),
    ],
)
def test_an_error_is_one_clear_line(run: Run, words: list[str], stdin: str, what: str) -> None:
    result = run("audit", *words, stdin=stdin, code=1)
    assert what in str(result.exception)
    assert "\n" not in str(result.exception)


def test_a_sink_that_is_gone_is_said(log: None, run: Run, tmp_path: Path) -> None:
    run("audit", "export")
    (tmp_path / "heads.jsonl").unlink()
    assert "cannot be read" in str(run("audit", "verify", code=1).exception)


FILE = json.dumps({"session": "a", "seq": 1, "role": "user", "text": "disk full"})


def test_looking_and_exporting_leave_a_row(run: Run, database_url: str) -> None:
    number = _json(run("sessions", "import", "-", "--json", stdin=FILE))[0]["session"]
    run("sessions", "show", str(number))
    run("sessions", "export", str(number))
    run("sessions", "export", str(number), "--markdown")
    run("sessions", "show", str(number), "--user", "nobody", code=1)
    run("sessions", "archive", str(number))
    rows = [
        (line["event"], line["session"], line["person"], line["detail"])
        for line in _json(run("audit", "list", "--json"))
    ]
    assert rows == [
        ("session.changed", number, ME, {"how": "put away", "seq": None}),
        ("session.exported", number, ME, {"form": "post-mortem"}),
        ("session.exported", number, ME, {"form": "lines"}),
        ("session.viewed", number, ME, {"branches": "active"}),
        ("session.imported", number, ME, {"owner": "local", "key": "a", "added": 1}),
    ]


async def test_the_made_sealer_follows_the_settings(store: Store, tmp_path: Path) -> None:
    await filled(store, 1)
    await Sealer.made(store, secret=SECRET, sink=tmp_path / "s").tick()
    assert json.loads((tmp_path / "s").read_text())["key"] == Signer(SECRET).public
