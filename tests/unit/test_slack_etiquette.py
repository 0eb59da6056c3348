"""When the bot is spoken to."""

import pytest

from bot.slack.etiquette import Etiquette, acknowledges, decide, hinges_on_the_last_word
from bot.slack.incoming import Said
from storage.inbox import BOT, ThreadState

BOB = "U2"


def said(
    raw: str = "and now?", *, thread: str | None = "1.0", mention: bool = False, dm: bool = False
) -> Said:
    return Said(
        team="T1",
        channel="D1" if dm else "C1",
        ts="5.0",
        thread_ts=thread,
        author=BOB,
        author_team="T1",
        raw=raw,
        mentions_us=mention,
        is_dm=dm,
        shared=False,
        event_key="Ev1",
    )


def thread(
    last_by: str = "U1", *, session: int | None = 7, people: tuple[str, ...] = ("U1", BOB)
) -> ThreadState:
    return ThreadState(session, last_by, people)


CASES = [
    (
        "a mention at the top of a channel",
        said("<@U0BOT> hi", thread=None, mention=True),
        thread(session=None),
        "turn",
    ),
    ("a mention among people", said("<@U0BOT> hi", mention=True), thread(), "turn"),
    ("a mention after somebody else's", said("<@U9> and <@U0BOT> look", mention=True), thread(), "turn"),
    ("a direct message", said(dm=True, thread=None), thread(session=None), "turn"),
    ("a thank-you in a direct message", said("thanks", dm=True), thread(), "turn"),
    ("the top of a channel", said(thread=None), thread(session=None), "nothing"),
    ("a thread without a session", said(), thread(session=None), "nothing"),
    ("a reply to our own post", said(), thread(BOT), "turn"),
    ("go ahead after our question", said("go ahead"), thread(BOT), "turn"),
    ("a reply to a person", said(), thread("U1"), "context"),
    ("a lone author", said(), thread(BOB, people=(BOB,)), "turn"),
    ("a lone author of whom nothing is known yet", said(), thread("", people=()), "turn"),
    ("to somebody else, after our post", said("<@U9> can you?"), thread(BOT), "context"),
    ("to a group, after our post", said("<!subteam^S1|@sre> can you?"), thread(BOT), "context"),
    ("thanks after our post", said("Thanks!"), thread(BOT), "context"),
    ("thanks of a lone author", said("谢谢"), thread(BOB, people=(BOB,)), "context"),
]


@pytest.mark.parametrize(("message", "state", "what"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_who_is_spoken_to(message: Said, state: ThreadState, what: str) -> None:
    plain = message.raw.replace("<@U0BOT> ", "")
    assert decide(message, state, plain=plain) is Etiquette(what)


@pytest.mark.parametrize(
    "text",
    [
        "thanks",
        "Thank you!",
        "ok",
        "OK.",
        "好的",
        "好的，谢谢！",
        "收到",
        "👍",
        "👍🏽 🎉",
        ":+1::skin-tone-2:",
        "thx :tada:",
        "",
    ],
)
def test_an_acknowledgement_asks_for_nothing(text: str) -> None:
    assert acknowledges(text)


@pytest.mark.parametrize(
    "text",
    ["yes", "go ahead", "continue", "继续", "可以", "thanks, and web-2?", "ok but why", "no", "8", "是"],
)
def test_an_answer_or_a_question_is_no_acknowledgement(text: str) -> None:
    assert not acknowledges(text)


def test_a_post_on_its_way_matters_only_where_it_would_turn_the_decision() -> None:
    def hinges(message: Said, state: ThreadState) -> bool:
        moving = ThreadState(state.session_id, state.last_by, state.people, in_flight=True)
        assert not hinges_on_the_last_word(message, state, plain=message.raw)
        return hinges_on_the_last_word(message, moving, plain=message.raw)

    assert hinges(said(), thread("U1"))
    assert not hinges(said(), thread(BOT))
    assert not hinges(said(mention=True), thread("U1"))
    assert not hinges(said("<@U9> you?"), thread("U1"))
    assert not hinges(said("thanks"), thread("U1"))
    assert not hinges(said(), thread(session=None))
