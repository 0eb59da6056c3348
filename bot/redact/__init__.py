"""Secrets are taken out of every text before the model, Slack, the database and the logs see it."""

from bot.redact.live import LiveText
from bot.redact.redactor import Redacted, Redactor
from bot.redact.rules import load_redactor
from bot.redact.worker import RedactionWorker

__all__ = ["LiveText", "Redacted", "RedactionWorker", "Redactor", "load_redactor"]
