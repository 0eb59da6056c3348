"""Secrets are taken out of every text before the model, Slack, the database and the logs see it."""

from bot.redact.redactor import Redacted, Redactor
from bot.redact.rules import load_redactor

__all__ = ["Redacted", "Redactor", "load_redactor"]
