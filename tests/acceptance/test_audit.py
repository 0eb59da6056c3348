"""What a process does is sealed and vouched for by the time it has ended."""

from __future__ import annotations

import json
from pathlib import Path

from tests.acceptance.processes import run

SECRET = "made-up-secret-of-the-tests"


async def test_a_turn_is_in_the_log_sealed_and_signed_when_its_process_ends(
    database_url: str, tmp_path: Path
) -> None:
    env = {
        "DATABASE_URL": database_url,
        "OPSTHREAD_DATA_DIR": str(tmp_path / "data"),
        "OPSTHREAD_SECRET_KEY": SECRET,
        "OPSTHREAD_AUDIT_SINK": str(tmp_path / "heads.jsonl"),
    }
    status, asked = await run("ask", "is the disk filling up?", "--json", env=env)
    assert status == 0, asked.text()
    session = str(asked.last("answer")["session"])

    status, listed = await run("audit", "list", "--session", session, "--json", env=env)
    assert status == 0, listed.text()
    events = [json.loads(line)["event"] for line in listed.out]
    assert {"command.started", "command.done"} <= set(events)

    status, verified = await run("audit", "verify", "--json", env=env)
    report = json.loads(verified.out[0])
    assert (status, report["fault"], report["unsealed"], report["signature"]) == (0, None, 0, "valid")
    assert report["head"]["link"] == report["link"] == len(events)

    status, exported = await run("audit", "export", env=env)
    assert status == 0, exported.text()
    await _offline(exported.out, tmp_path)


async def _offline(lines: list[str], tmp_path: Path) -> None:
    """Elsewhere: no database, no secret, only the file."""
    (tmp_path / "log.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    status, verified = await run("audit", "verify", "--file", str(tmp_path / "log.jsonl"), "--json")
    report = json.loads(verified.out[0])
    assert (status, report["whole"], report["signature"]) == (0, True, "unchecked")
