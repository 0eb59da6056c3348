"""Doors that secrets could come in by: names that people give themselves, and the reason of a mode."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from sqlalchemy import text

from tests.acceptance.processes import run as opsthread
from tests.fakes.model import say
from tests.turns.rig import Rig, open_rig

TOKEN = "ghp_" + "A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8"


async def kept(rig: Rig) -> str:
    """Every row of every table."""
    async with rig.store.begin() as db:
        tables = await db.execute(
            text("SELECT table_name FROM information_schema.tables WHERE table_schema = 'public'")
        )
        out = ""
        for (table,) in tables.all():
            rows = await db.execute(text(f'SELECT to_jsonb(x)::text FROM "{table}" x'))
            out += "".join(row[0] for row in rows)
    return out


async def test_a_name_that_holds_a_secret_is_kept_and_told_without_it(
    database_url: str, tmp_path: Path
) -> None:
    async with open_rig(database_url, tmp_path / "data") as rig:
        rig.model.push(say("ok"))
        talk = rig.conversation()
        arrival = replace(talk._arrival("hi"), person_name=f"Bob {TOKEN}")
        receipt = await rig.app.desk.receive(arrival)
        assert receipt.session_id is not None
        assert receipt.turn_id is not None
        await rig.app.desk.work_on(receipt.session_id, turn_id=receipt.turn_id)
        assert "Bob [redacted:" in await kept(rig)
        assert TOKEN not in await kept(rig)
        assert TOKEN not in str(rig.model.requests)


async def test_the_reason_of_a_mode_is_kept_without_its_secrets(database_url: str, tmp_path: Path) -> None:
    env = {"DATABASE_URL": database_url}
    status, said = await opsthread("mode", "read-only", "--why", f"rotate {TOKEN}", env=env, cwd=tmp_path)
    assert status == 0, said.text()
    assert TOKEN not in said.text()
    async with open_rig(database_url, tmp_path / "data") as rig:
        assert "rotate [redacted:" in await kept(rig)
        assert TOKEN not in await kept(rig)
