"""`sessions …` and `db …` as a person or another program calls them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner, Result

from bot.cli import db, sessions
from storage import approvals, commands, milestones
from storage import sessions as stored
from storage.migrate import head
from storage.records import CommandState, Decision, Ended, MilestoneKind, MilestoneSource, Origin
from storage.store import Store
from tests import make

Run = Callable[..., Result]


@pytest.fixture
def run(database_url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    """Runs a command over the test's database, away from any .env file."""
    monkeypatch.setenv("DATABASE_URL", database_url)
    monkeypatch.chdir(tmp_path)
    app = typer.Typer()
    sessions.register(app)
    db.register(app)

    def invoke(*words: str, stdin: str = "") -> Result:
        return CliRunner().invoke(app, list(words), input=stdin)

    return invoke


def _filled(database_url: str, work: Callable[[Store], Any]) -> Any:
    async def opened() -> Any:
        store = Store(database_url)
        try:
            return await work(store)
        finally:
            await store.close()

    return asyncio.run(opened())


def _json(result: Result) -> list[dict[str, Any]]:
    assert result.exit_code == 0, result.output
    return [json.loads(line) for line in result.stdout.splitlines()]


FILE = "\n".join(
    json.dumps(
        {"session": key, "seq": seq, "role": "user", "author": "Alice", "text": text}, ensure_ascii=False
    )
    for key, seq, text in [("a", 1, "磁盘 full on db-1"), ("a", 2, "disk of web-1"), ("b", 1, "nginx 502")]
)


def test_import_list_show_export_and_search_agree(run: Run) -> None:
    done = _json(run("sessions", "import", "-", "--user", "u1", "--json", stdin=FILE))
    assert [(line["key"], line["added"]) for line in done] == [("a", 2), ("b", 1)]
    assert (
        "0 messages added, 3 were there already"
        in run("sessions", "import", "-", "--user", "u1", stdin=FILE).stdout
    )

    listed = _json(run("sessions", "list", "--json"))
    assert [line["key"] for line in listed] == ["b", "a"]
    assert list(listed[0]) == [
        "id", "key", "origin", "team", "channel", "title", "state", "people", "hosts", "created_at", "updated_at", "link",
    ]  # fmt: skip
    assert _json(run("sessions", "list", "--user", "u2", "--json")) == []

    number = str(listed[1]["id"])
    shown = _json(run("sessions", "show", number, "--json"))
    assert list(shown[0]) == [
        "seq", "id", "parent_id", "role", "author", "text", "tool_calls", "tool_call_id", "created_at",
    ]  # fmt: skip
    assert [line["text"] for line in shown] == ["磁盘 full on db-1", "disk of web-1"]
    assert shown[1]["parent_id"] == shown[0]["id"]

    exported = run("sessions", "export", number)
    assert "磁盘" in exported.stdout, "readable, not escaped"
    assert [line["session"] for line in _json(exported)] == ["a", "a"]

    found = _json(run("sessions", "search", "disk", "--user", "u1", "--json"))
    hit = found[0]["hits"][0]
    assert found[0]["query"] == "disk"
    assert (hit["session"], hit["key"], hit["message"], hit["seq"]) == (int(number), "a", shown[1]["id"], 2)
    assert hit["score"] > 0


def test_a_file_of_queries_gets_one_line_each(run: Run, tmp_path: Path) -> None:
    run("sessions", "import", "-", stdin=FILE)
    (tmp_path / "queries").write_text("nginx\n磁盘\n\nunknown\n", encoding="utf-8")
    lines = _json(run("sessions", "search", "--queries", "queries", "--by", "session", "--limit", "1"))
    assert [(line["query"], [hit["key"] for hit in line["hits"]]) for line in lines] == [
        ("nginx", ["b"]),
        ("磁盘", ["a"]),
        ("", []),
        ("unknown", []),
    ]
    assert _json(run("sessions", "search", "nginx", "--user", "somebody", "--json"))[0]["hits"] == []


def test_the_tree_is_walked_from_the_command_line(run: Run) -> None:
    number = str(_json(run("sessions", "import", "-", "--json", stdin=FILE))[0]["session"])
    assert run("sessions", "rewind", number, "2").exit_code == 0
    assert [line["seq"] for line in _json(run("sessions", "show", number, "--json"))] == [1]
    assert [line["seq"] for line in _json(run("sessions", "show", number, "--all", "--json"))] == [1, 2]
    branches = _json(run("sessions", "branches", number, "--json"))
    assert [(b["branch"], b["current"], b["messages"]) for b in branches] == [(2, False, 2), (1, True, 1)]
    assert run("sessions", "switch", number, "2").exit_code == 0
    assert len(_json(run("sessions", "show", number, "--json"))) == 2
    assert run("sessions", "archive", number).exit_code == 0
    assert number not in [str(line["id"]) for line in _json(run("sessions", "list", "--json"))]
    assert _json(run("sessions", "list", "--archived", "--json"))[0]["state"] == "archived"
    assert run("sessions", "archive", number, "--undo").exit_code == 0
    assert len(_json(run("sessions", "list", "--json"))) == 2


@pytest.mark.parametrize(
    ("words", "stdin", "what"),
    [
        (["show", "9"], "", "there is no session 9"),
        (["rewind", "9", "1"], "", "there is no session 9"),
        (["output", "9"], "", "there is no command 9"),
        (["search"], "", "give either the TEXT to look for or --queries FILE"),
        (["search", "x", "--by", "day"], "", "it is message or session"),
        (["search", "--queries", "absent"], "", "absent cannot be read"),
        (["import", "absent"], "", "absent cannot be read"),
        (
            ["import", "-"],
            FILE + '\n{"session": "c", "seq": 1, "role": "system", "text": ""}',
            "line 4: unknown role",
        ),
    ],
)
def test_an_error_is_one_clear_line(run: Run, words: list[str], stdin: str, what: str) -> None:
    result = run("sessions", *words, stdin=stdin)
    assert result.exit_code == 1
    assert what in str(result.exception)
    assert "\n" not in str(result.exception)
    assert _json(run("sessions", "list", "--json")) == [], "nothing was imported"


def test_another_persons_session_is_not_shown(run: Run) -> None:
    number = str(_json(run("sessions", "import", "-", "--user", "u1", "--json", stdin=FILE))[0]["session"])
    for command in ("show", "export"):
        assert run("sessions", command, number, "--user", "u1").exit_code == 0
        assert f"u2 has no session {number}" in str(
            run("sessions", command, number, "--user", "u2").exception
        )


def test_text_in_a_pipe_cannot_drive_a_terminal(run: Run) -> None:
    line = json.dumps({"session": "a", "seq": 1, "role": "user", "text": "x\x1b]0;evil\x07 y"})
    number = str(_json(run("sessions", "import", "-", "--json", stdin=line))[0]["session"])
    for words in (["list"], ["show", number], ["search", "evil"]):
        told = run("sessions", *words)
        assert "evil" in told.stdout
        assert "\x1b" not in told.stdout


async def _incident(store: Store) -> tuple[int, int]:
    session = await make.stored_session(
        store,
        make.user("is `nginx` | down?\nplease look"),
        key="C01OPS:1.000100",
        origin=Origin.SLACK,
        channel="C01OPS",
        thread_ts="1.000100",
    )
    claim = await make.claimed(store, session.id)
    async with store.begin() as db:
        await _talk(db, session.id, claim.epoch)
        asked = await approvals.open_(
            db,
            replace(
                make.approval(run="systemctl restart nginx"),
                team=make.TEAM,
                session_id=session.id,
                turn_id=claim.turn.id,
                call_id="c2",
                purpose="bring the site back",
                expires_at=make.NOW.replace(year=2099),
            ),
        )
        await approvals.answer(db, approval_id=asked.id, person="U02BOB", name="U02BOB", approve=True)
        await approvals.use(db, approval_id=asked.id)
        common = {"team": make.TEAM, "session_id": session.id, "turn_id": claim.turn.id, "host": "web-1"}
        change = await commands.claim(
            db, call_id="c2", run="systemctl restart nginx", decision=Decision.ASK, reason="", approval_id=asked.id, **common
        )  # fmt: skip
        look = await commands.claim(
            db, call_id="c1", run="grep -c '|' /x", decision=Decision.ALLOW, reason="", approval_id=None, **common
        )  # fmt: skip
        assert change is not None
        assert look is not None
        await commands.finish(
            db,
            command_id=change.id,
            team=make.TEAM,
            ended=Ended(CommandState.UNKNOWN, note="the connection broke"),
        )
        await commands.finish(
            db,
            command_id=look.id,
            team=make.TEAM,
            ended=Ended(CommandState.DONE, exit_status=1, seconds=0.2, stdout="out 磁盘\n", stderr="err\n"),
        )
        await milestones.add(
            db,
            team=make.TEAM,
            session_id=session.id,
            turn_id=claim.turn.id,
            kind=MilestoneKind.ROOT_CAUSE,
            content="certificate expired",
            source=MilestoneSource.TOOL,
        )
    return session.id, look.id


async def _talk(db: Any, session_id: int, epoch: int) -> None:
    calls = make.assistant("", make.call("c1"))
    await stored.append(
        db, session_id, epoch, [calls, make.result("1", "c1"), make.assistant("It was the certificate.")]
    )


def test_the_post_mortem_tells_what_happened(run: Run, database_url: str) -> None:
    number, _ = _filled(database_url, _incident)
    told = run("sessions", "export", str(number), "--markdown").stdout
    assert told.startswith("# why is the disk full?\n")
    assert "- Hosts: web-1" in told
    assert "- root cause: certificate expired" in told
    assert "> It was the certificate." in told
    assert r"Alice: is \`nginx\` \| down? please look" in told
    assert "### Approval 1: approved and carried out by U02BOB" in told
    assert "```sh\nsystemctl restart nginx\n```" in told
    assert "- Outcome: web-1: outcome unknown (the connection broke)" in told
    assert r"| web-1 | `grep -c '\|' /x` | exit 1 | 0.2 |" in told
    headings = [line for line in told.splitlines() if line.startswith("## ")]
    assert headings == [
        "## Summary", "## Timeline (UTC)", "## Changes and approvals", "## Commands", "## Conversation",
    ]  # fmt: skip


def test_a_slack_session_has_its_link_and_its_running_turn(run: Run, database_url: str) -> None:
    _filled(database_url, _incident)
    (line,) = _json(run("sessions", "list", "--json"))
    assert line["link"] == "https://app.slack.com/client/T1/C01OPS/thread/C01OPS-1.000100"
    assert (line["state"], line["hosts"], line["people"]) == ("running", ["web-1"], ["Alice"])
    assert "a turn is at work" in str(run("sessions", "rewind", str(line["id"]), "1").exception)


def test_the_kept_output_of_a_command_comes_back_on_both_streams(run: Run, database_url: str) -> None:
    _, number = _filled(database_url, _incident)
    told = run("sessions", "output", str(number))
    assert (told.stdout, told.stderr) == ("out 磁盘\n", "err\n")
    (line,) = _json(run("sessions", "output", str(number), "--json"))
    assert (line["command"], line["host"], line["exit_status"], line["stdout"]) == (
        number,
        "web-1",
        1,
        "out 磁盘\n",
    )


def test_the_schema_is_told_and_brought_up(
    run: Run, empty_database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABASE_URL", empty_database_url)
    assert "no schema yet" in run("db", "current").stdout
    assert f"at revision {head()}" in run("db", "upgrade").stdout
    assert run("db", "current").stdout == f"{head()}\n"


def test_without_database_url_the_embedded_server_is_used(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("DATABASE_URL")
    monkeypatch.setenv("OPSTHREAD_DATA_DIR", str(tmp_path / "data"))
    assert run("db", "upgrade").stdout == f"the schema is at revision {head()}\n"
    assert len(_json(run("sessions", "import", "-", "--json", stdin=FILE))) == 2
    assert len(_json(run("sessions", "list", "--json"))) == 2
    assert not (tmp_path / "data/postgres/data/postmaster.pid").exists(), "the last user stopped it"
