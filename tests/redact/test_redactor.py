"""Made-up secrets in many shapes go, ordinary text stays, and no text makes it slow or breaks it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from bot.redact import load_redactor
from bot.redact.redactor import MARK
from tests.redact.cases import HERE, harmless, secrets

LOGS = Path(os.environ.get("SHARED", HERE.parents[1] / ".." / "shared")) / "logs"
REDACTOR = load_redactor()


@pytest.mark.parametrize(("secret", "text"), list(secrets()))
def test_a_secret_goes(secret: str, text: str) -> None:
    found = REDACTOR.text(text)
    assert secret not in found.text
    assert found.found
    assert len(MARK.findall(found.text)) == len(found.found)


@pytest.mark.parametrize("secret_and_text", list(secrets()), ids=lambda s: s[1][:60])
def test_what_is_redacted_stays_as_it_is(secret_and_text: tuple[str, str]) -> None:
    once = REDACTOR.text(secret_and_text[1]).text
    assert REDACTOR.text(once).text == once


@pytest.mark.parametrize("line", harmless())
def test_ordinary_text_stays(line: str) -> None:
    assert REDACTOR.text(line).text == line


@pytest.mark.skipif(
    not LOGS.is_dir(), reason=f"{LOGS} is not there (set SHARED to the folder that holds logs/)"
)
def test_real_logs_stay_as_they_are() -> None:
    """At most 3 of these 3,200 lines may change; none of them holds a secret."""
    lines = [
        line for log in sorted(LOGS.glob("*.log")) for line in log.read_text("utf-8", "replace").split("\n")
    ]
    changed = [line for line in lines if REDACTOR.text(line).text != line]
    assert len(lines) >= 3200
    assert len(changed) <= 3, changed
