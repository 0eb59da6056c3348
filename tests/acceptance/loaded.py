"""Imported once by the process that the others are forked from: all of the program, and the rules that all read alike."""

from __future__ import annotations

import gc

import alembic.command

from bot.cli import main, talking
from bot.policy.rules import load_rules
from bot.redact import load_redactor
from bot.slack import front
from tests.acceptance import forking

__all__ = ["alembic", "forking", "front", "talking"]

main.load()
load_rules()
load_redactor()
gc.freeze()  # what is here to stay need not be looked through, and so copied, in every process
