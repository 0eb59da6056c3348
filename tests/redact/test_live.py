"""What is shown of a text that is still being written never holds a secret, and is the text where there is none."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.redact import LiveText, load_redactor
from tests.redact.cases import harmless, secrets

REDACTOR = load_redactor(["own value of ours"])
# Only a later line says that these are secrets, so the live view cannot know in time; the finished text does.
TOLD_AFTERWARDS = ("\nkind: Secret", "-----END PRIVATE KEY-----\nrest")
CASES = [(s, t) for s, t in secrets() if not any(word in t for word in TOLD_AFTERWARDS)]


def cut(text: str, seed: int) -> list[str]:
    chance, out = random.Random(seed), []
    while text:
        size = chance.choice([1, 1, 2, 3, 5, 8, 40])
        out.append(text[:size])
        text = text[size:]
    return out


@pytest.mark.parametrize(("secret", "text"), CASES)
def test_no_piece_nor_all_together_show_a_secret(secret: str, text: str) -> None:
    whole = f"Look at this:\n{text}\nand go on. " + "More words. " * 5
    redacted = REDACTOR.text(whole).text
    for seed in range(4):
        live, shown = LiveText(REDACTOR), ""
        for piece in cut(whole, seed):
            shown += live.feed(piece)
            assert secret not in shown, f"seed {seed}"
        shown += live.close()
        assert secret not in shown, f"seed {seed}"
        assert live.broken or shown == redacted, f"seed {seed}"


@pytest.mark.parametrize("line", harmless())
def test_ordinary_text_is_shown_whole(line: str) -> None:
    live, whole = LiveText(REDACTOR), f"{line}\nnext words\n"
    assert "".join(live.feed(piece) for piece in cut(whole, 1)) + live.close() == whole


def test_words_are_shown_as_they_end() -> None:
    live = LiveText(REDACTOR)
    pieces = ("Disk ", "is f", "ull on web", "-1.\n")
    assert [live.feed(piece) for piece in pieces] == ["Disk ", "is ", "full on ", "web-1.\n"]


def test_a_value_of_ours_with_spaces_is_held_back() -> None:
    live = LiveText(REDACTOR)
    shown = [live.feed(word) for word in ("say ", "own ", "value ", "of ", "ours ", "now ")]
    assert "".join(shown) == "say [redacted:own-value] now "


def test_a_key_that_is_written_out_is_never_shown_and_the_words_after_it_are() -> None:
    live = LiveText(REDACTOR)
    text = "The key:\n-----BEGIN RSA PRIVATE KEY-----\nMIIEpA\nq8Wz2Xv5\n-----END RSA PRIVATE KEY-----\nDone, so far.\n"
    shown = "".join(live.feed(char) for char in text) + live.close()
    assert shown == "The key:\n[redacted:private-key]\nDone, so far.\n"


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.sampled_from([t for _, t in CASES] + harmless() + ["\n", " ", "words "]), max_size=12),
    st.integers(),
)
def test_any_mixture_is_the_redacted_text_or_stops(parts: list[str], seed: int) -> None:
    live, whole = LiveText(REDACTOR), " \n".join(parts)
    shown = "".join(live.feed(piece) for piece in cut(whole, seed)) + live.close()
    assert live.broken or shown == REDACTOR.text(whole).text


def test_a_long_text_is_not_kept_whole() -> None:
    live = LiveText(REDACTOR)
    text = "an ordinary line of an answer\n" * 1000
    assert "".join(live.feed(line) for line in text.splitlines(keepends=True)) + live.close() == text
    assert len(live._open) < 5_000
