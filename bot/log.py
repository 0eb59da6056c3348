"""Structured logs on stderr: one line an event, console or JSON. Never message texts, never output."""

from __future__ import annotations

import logging
import sys
from typing import Literal

import structlog

from bot.redact.log import RedactEvent
from bot.redact.redactor import Redactor


def configure(log_format: Literal["console", "json"], level: str, redactor: Redactor | None = None) -> None:
    """Set up structlog and route the standard library's warnings of our dependencies through it.

    redactor: takes secrets out of every line; by default one with the packaged rules.
    """
    number = logging.getLevelNamesMapping()[level.upper()]
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    last: structlog.typing.Processor = (
        structlog.processors.JSONRenderer(ensure_ascii=False)
        if log_format == "json"
        else structlog.dev.ConsoleRenderer(
            colors=sys.stderr.isatty(), exception_formatter=structlog.dev.plain_traceback
        )
    )
    # Exceptions become text before secrets are taken out, so that no renderer writes what was not seen.
    tail: list[structlog.typing.Processor] = [
        structlog.processors.format_exc_info,
        RedactEvent(redactor),
        last,
    ]
    structlog.configure(
        processors=[*shared, *tail],
        wrapper_class=structlog.make_filtering_bound_logger(number),
        logger_factory=lambda *_: structlog.PrintLogger(sys.stderr),  # the one of now, if it was replaced
        cache_logger_on_first_use=False,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *tail],
        )
    )
    logging.basicConfig(handlers=[handler], level=max(number, logging.WARNING), force=True)


def get(name: str) -> structlog.typing.FilteringBoundLogger:
    """A logger; bind ids (session, turn, host), not contents."""
    logger: structlog.typing.FilteringBoundLogger = structlog.get_logger(name)
    return logger
