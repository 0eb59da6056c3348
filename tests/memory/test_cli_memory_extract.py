"""`memory extract` as a process: JSON lines in, JSON lines out, one clear error."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from bot.cli.memory import memory_app
from bot.errors import UsageError


def run(tmp_path: Path, *lines: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "bot", "memory", "extract"],
        input="\n".join(lines) + "\n", capture_output=True, encoding="utf-8", check=False,
        env={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "PYTHONPATH": str(Path(__file__).parents[2])},
    )  # fmt: skip


def message(**fields: Any) -> str:
    return json.dumps(fields, ensure_ascii=False)


def test_lines_in_give_memories_out_with_the_line_they_came_from(tmp_path: Path) -> None:
    done = run(
        tmp_path,
        message(
            role="user", author="U01ALICE", text="以后请用中文回答。", host=None, at="2026-12-01T10:00:00Z"
        ),
        "",
        message(
            role="tool", host="web-1", command="'nginx' -v", exit_status=0, text="nginx version: nginx/1.24.0"
        ),
        message(role="user", author="U01ALICE", text="Always log in with password=hunter2hunter2x9 please"),
    )
    assert done.returncode == 0, done.stderr
    first, second = (json.loads(line) for line in done.stdout.splitlines())
    assert first["kind"] == "USER_PREFERENCE"
    assert first["source"] == 1
    assert second == {
        "kind": "SOFTWARE_FACT", "subject": "web-1", "attribute": "nginx version", "value": "1.24.0",
        "text": "On web-1, nginx is version 1.24.0.", "host": "web-1", "source": 3,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("not json", "not JSON"),
        ('{"role":"system","text":"x"}', '"role"'),
        ('{"role":"user"}', '"text"'),
        ('{"role":"tool","text":"x","exit_status":"0"}', '"exit_status"'),
        ('{"role":"tool","text":"x","host":7}', '"host"'),
        ("[]", '"role"'),
    ],
)
def test_a_bad_line_is_one_error_with_its_number(line: str, says: str) -> None:
    text = "\n".join([message(role="user", text="hello"), line])
    with pytest.raises(UsageError, match=f"^stdin line 2: .*{re.escape(says)}"):
        CliRunner().invoke(memory_app, ["extract"], input=text, catch_exceptions=False)
