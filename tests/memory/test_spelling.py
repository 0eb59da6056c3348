"""Slips of the keyboard and traditional characters are read as meant, and kept as written."""

from __future__ import annotations

import pytest

from bot.memory import TakenBack, events, extract
from bot.memory.preferences.spelling import evened, simplified
from bot.memory.records import Heard
from storage.records import Role


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("alwyas", "always"),
        ("allways", "always"),
        ("alwas", "always"),
        ("defualt", "default"),
        ("rememeber", "remember"),
        ("perfer", "prefer"),
        ("form now on", "from now on"),
        ("已后都用中文", "以后都用中文"),
    ],
)
def test_a_slip_in_a_signal_word_is_mended(typed: str, meant: str) -> None:
    assert evened(typed) == meant


@pytest.mark.parametrize(
    "text",
    ["defaults", "refer", "reminder", "prefers", "remembers", "forwards", "delays", "已后台运行", "from on"],
)
def test_other_words_stay(text: str) -> None:
    assert evened(text) == text


def test_traditional_characters_are_read_sign_by_sign() -> None:
    text = "以後請用繁體中文回覆我"
    assert len(simplified(text)) == len(text)
    (found,) = extract([Heard(Role.USER, "以後查日誌請附上時間範圍", "U1")])
    assert "時間範圍" in found.text


def test_one_sentence_takes_back_and_states() -> None:
    told = list(
        events([Heard(Role.USER, "scratch what I said about short answers, use tables from now on", "U1")])
    )
    assert [type(each).__name__ for each in told] == ["TakenBack", "Found"]
    assert isinstance(told[0], TakenBack)
    assert "short" in told[0].words


def test_endings_of_a_word_do_not_matter_to_a_taking_back() -> None:
    said = ["Always page me for disk alerts.", "forget about the paging"]
    assert not extract([Heard(Role.USER, text, "U1") for text in said])
