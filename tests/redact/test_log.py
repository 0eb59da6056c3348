"""No log line shows a secret, whoever writes it and however deep it lies."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Literal

import pytest
import structlog

from bot import log
from bot.redact import load_redactor


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level, configured = root.handlers[:], root.level, structlog.get_config()
    yield
    structlog.configure(**configured)
    root.handlers[:], root.level = handlers, level


class Opaque:
    def __repr__(self) -> str:
        return "<Opaque password=hunter2>"


def fail() -> None:
    raise ValueError("no login with password=hunter2")


@pytest.mark.parametrize("log_format", ["console", "json"])
def test_no_line_shows_a_secret(
    log_format: Literal["console", "json"], capsys: pytest.CaptureFixture[str]
) -> None:
    log.configure(log_format, "info", load_redactor(["own-value-of-ours"]))
    logger = structlog.get_logger("test")
    logger.warning(
        "said password=hunter2 own-value-of-ours", password="hunter2", deep={"a": [{"token": "q9X2v7Tn4Rm8"}]},
        raw=b"password=hunter2", thing=Opaque(), error=ValueError("mysql -phunter2"), turn=12,
    )  # fmt: skip
    try:
        fail()
    except ValueError:
        logger.exception("failed")
        logging.getLogger("other").exception("failed too, %s", "PGPASSWORD=hunter2")
    logging.getLogger("other").warning("password=hunter2 %s", "own-value-of-ours", stack_info=True)
    shown = capsys.readouterr().err
    assert "hunter2" not in shown
    assert "q9X2v7" not in shown
    assert shown.count("[redacted:own-value]") >= 2
    assert "ValueError" in shown
    assert "failed too" in shown
    assert "12" in shown


def test_without_a_redactor_there_are_the_packaged_rules(capsys: pytest.CaptureFixture[str]) -> None:
    log.configure("json", "info")
    structlog.get_logger("test").warning("password=hunter2")
    assert "password=[redacted:password]" in capsys.readouterr().err
