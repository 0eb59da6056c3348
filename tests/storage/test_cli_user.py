"""`--user` on what shows a session: what its host's rules do not give that person is withheld everywhere."""

from __future__ import annotations

import json
from pathlib import Path

from sqlalchemy import text as sql

from storage import commands
from storage.records import Decision, Message, Role, ToolCall
from storage.store import Store
from tests import make
from tests.acceptance.processes import run as opsthread

HOSTS = """defaults: {user: opsbot, known_hosts: /nowhere, identity: [/nowhere]}
hosts: [{name: db-1, address: 10.0.0.1}, {name: web-1, address: 10.0.0.2}]
access: [{users: [U01ALICE], channels: [terminal], hosts: [web-1]}]
"""


async def session(store: Store) -> int:
    arguments = json.dumps({"hosts": ["db-1"], "command": "cat /var/log/balance.log"})
    call = ToolCall("c1", "run_command", arguments)
    made = await make.stored_session(
        store,
        Message(role=Role.USER, text="what is the balance?", author="bob"),
        Message(role=Role.ASSISTANT, text="", tool_calls=(call,)),
        Message(role=Role.TOOL, text="the balance is 4711 zebra", tool_call_id="c1"),
    )
    claim = await make.claimed(store, made.id)
    async with store.begin() as db:
        await commands.claim(
            db, team=make.TEAM, session_id=made.id, turn_id=claim.turn.id, call_id="c1", host="db-1",
            run="cat /var/log/balance.log", decision=Decision.ALLOW, reason="", approval_id=None,
        )  # fmt: skip
    return made.id


async def test_search_shows_no_result_that_show_withholds(
    store: Store, database_url: str, tmp_path: Path
) -> None:
    number = await session(store)
    (tmp_path / "hosts.yml").write_text(HOSTS)
    env = {"DATABASE_URL": database_url, "OPSTHREAD_HOSTS": str(tmp_path / "hosts.yml")}
    _, shown = await opsthread("sessions", "show", str(number), "--user", make.ALICE, env=env, cwd=tmp_path)
    assert "(withheld: this is from db-1" in shown.text(), shown.text()
    _, found = await opsthread("sessions", "search", "zebra", "--user", make.ALICE, env=env, cwd=tmp_path)
    assert "4711" not in found.text(), found.text()
    async with store.begin() as db:
        rows = await db.execute(sql("SELECT event FROM audit ORDER BY id"))
        assert [row.event for row in rows][-2:] == ["session.viewed", "session.viewed"]
