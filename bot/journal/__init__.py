"""The one door through which everything of a turn is written: record and posts in one transaction, then shown."""

from bot.journal.journal import Journal as Journal
from bot.journal.writer import Writer as Writer
