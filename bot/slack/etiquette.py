"""When the bot is spoken to, and when people are talking with one another. Pure.

A direct message and a mention always start a turn. A reply without a mention starts one in a thread that
has a session, when it follows our own post or when only its author has written there. What does not start
a turn is context for the next; outside our threads nothing is even stored.
"""

from __future__ import annotations

import re
import unicodedata
from enum import StrEnum

from bot.slack import text as words
from bot.slack.incoming import Said
from storage.inbox import BOT, ThreadState


class Etiquette(StrEnum):
    """turn: the bot is spoken to · context: kept for the next turn · nothing: not ours."""

    TURN = "turn"
    CONTEXT = "context"
    NOTHING = "nothing"


def decide(said: Said, thread: ThreadState, *, plain: str) -> Etiquette:
    """thread: as it stood before this message. plain: its readable text."""
    if said.is_dm or said.mentions_us:
        return Etiquette.TURN
    if said.thread_ts is None or thread.session_id is None:
        return Etiquette.NOTHING
    if words.leading_mention(said.raw) or (acknowledges(plain) and not said.files):
        return Etiquette.CONTEXT
    alone = set(thread.people) <= {said.author}
    return Etiquette.TURN if thread.last_by == BOT or alone else Etiquette.CONTEXT


def hinges_on_the_last_word(said: Said, thread: ThreadState, *, plain: str) -> bool:
    """Whether a post of ours that is just on its way would turn the decision."""
    settled = thread.last_by == BOT or decide(said, thread, plain=plain) is not Etiquette.CONTEXT
    return (
        thread.in_flight and not settled and not words.leading_mention(said.raw) and not acknowledges(plain)
    )


_SHORTCODE = re.compile(r":[a-z0-9_+'-]+(?:::skin-tone-\d)?:", re.IGNORECASE)
_ACKNOWLEDGED = frozenset(
    [
        "",
        "thanks",
        "thank you",
        "thank you very much",
        "thanks a lot",
        "many thanks",
        "thx",
        "ty",
        "tysm",
        "cheers",
        "great",
        "great thanks",
        "nice",
        "cool",
        "perfect",
        "awesome",
        "good",
        "good job",
        "well done",
        "ok",
        "okay",
        "ok thanks",
        "okay thanks",
        "ok thank you",
        "k",
        "kk",
        "got it",
        "noted",
        "ack",
        "understood",
        "i see",
        "will do",
        "lgtm",
        "np",
        "no problem",
        "sounds good",
        "makes sense",
        "ok great",
        "谢谢",
        "谢谢你",
        "谢谢您",
        "多谢",
        "感谢",
        "非常感谢",
        "谢了",
        "辛苦",
        "辛苦了",
        "好",
        "好的",
        "好吧",
        "好的 谢谢",
        "好的谢谢",
        "好的 收到",
        "行",
        "嗯",
        "嗯嗯",
        "哦",
        "收到",
        "明白",
        "明白了",
        "知道了",
        "了解",
        "不错",
        "太好了",
        "很好",
        "赞",
        "好滴",
        "好嘞",
        "收到 谢谢",
        "danke",
        "merci",
        "gracias",
    ]
)


def acknowledges(plain: str) -> bool:
    """Only a thank-you, an OK, an emoji or nothing at all: at most worth a reaction."""
    bare = _SHORTCODE.sub(" ", plain.casefold())
    kept = "".join(s if _is_word(s) else "" if s in "'’" else " " for s in bare)
    return " ".join(kept.split()) in _ACKNOWLEDGED


def _is_word(sign: str) -> bool:
    return unicodedata.category(sign)[0] in "LN"
