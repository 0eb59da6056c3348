"""The one door through which everything of a turn is written: record and posts in one transaction, then shown."""

from bot.journal.door import Door as Door
from bot.journal.journal import Journal as Journal
from bot.journal.ledger import Ledger as Ledger
from bot.journal.ledger import Question as Question
from bot.journal.ledger import Wanted as Wanted
from bot.journal.ledger import ended_detail as ended_detail
from bot.journal.ledger import redacted as redacted
from bot.journal.writer import Writer as Writer
