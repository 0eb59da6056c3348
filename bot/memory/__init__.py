"""Long-term memories by rules: what a conversation says that is worth keeping beyond it. Pure, no model call.

`extract` reads messages in order and gives what would stand at the end; `events` gives the same step by step,
with what was taken back, for a store that holds memories of earlier conversations.
"""

from bot.memory.extract import events, extract
from bot.memory.records import Found, Heard, TakenBack

__all__ = ["Found", "Heard", "TakenBack", "events", "extract"]
