"""Answers about memories -> Slack messages for one person's eyes. Pure."""

from __future__ import annotations

from bot.outside import clean
from bot.slack import blocks
from bot.slack.blocks import Block, Message, button, cap, context, section, short
from bot.slack.text import escape
from bot.turns.memories import Line, Told

FORGET, SHARE = "forget", "share"  # what the action ids begin with
SHOWN = 1_500  # characters of a memory
_MOST = 40  # memories of one message: Slack takes fifty blocks


def told_message(told: Told) -> Message:
    """A title, a section a memory with its button, and a hint."""
    made: list[Block] = [section(f"*{escape(told.title)}*"), *map(_section, told.lines[:_MOST])]
    if told.hint:
        made += context(told.hint)
    plain = [told.title, *(f"{each.id or ''} {short(each.text, 200)}".strip() for each in told.lines)]
    return Message(cap(escape("\n".join([*plain, told.hint]).strip())), tuple(made))


def _section(each: Line) -> Block:
    number = f"*{each.id}*  " if each.id else ""
    made = section(f"{number}{escape(short(clean(each.text), SHOWN))}\n_{escape(short(each.why, 300))}_")
    if each.share:
        made["accessory"] = button("Share", f"{SHARE}:{each.id}", each.share)
    elif each.forget:
        made["accessory"] = button(
            "Forget", f"{FORGET}:{each.id}", str(each.id), style="danger", confirm=_SURE
        )
    return made


_SURE = {
    "title": blocks.plain_text("Forget it?"),
    "text": blocks.plain_text("It is erased, with the earlier values it replaced."),
    "confirm": blocks.plain_text("Forget"),
    "deny": blocks.plain_text("Cancel"),
}
