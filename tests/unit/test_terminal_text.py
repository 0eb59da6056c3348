"""Hostile or odd text is harmless before it reaches a terminal."""

from __future__ import annotations

import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from bot.terminal.safe_text import exact, harmless, one_line


def test_colour_codes_of_ordinary_programs_go_without_a_trace() -> None:
    assert harmless("\x1b[01;34mbin\x1b[0m  \x1b[31m\x1b[Kmatch\x1b[m") == "bin  match"


def test_cursor_and_title_sequences_become_visible_and_do_nothing() -> None:
    assert harmless("a\x1b[2J\x1b]0;owned\x07b") == "a\\x1b[2J\\x1b]0;owned\\x07b"


def test_one_byte_controls_are_escaped_too() -> None:
    assert harmless("\x9b2J\x08\x7f") == "\\x9b2J\\x08\\x7f"


def test_every_kind_of_line_end_is_a_newline_so_nothing_is_written_over() -> None:
    assert harmless("real\rfake\r\nx\u2028y\x0cz") == "real\nfake\nx\ny\nz"


def test_text_that_reorders_itself_is_written_out() -> None:
    assert harmless("safe\u202egnp.exe") == "safe\\u202egnp.exe"


def test_chinese_and_emoji_stay_as_they_are() -> None:
    assert harmless("磁盘满了 👩\u200d💻") == "磁盘满了 👩\u200d💻"


def test_an_exact_command_drops_nothing_and_shows_what_cannot_be_seen() -> None:
    assert exact("ls\u00a0-l\u200b\t\x1b[31mx") == "ls\\xa0-l\\u200b\\t\\x1b[31mx"


def test_an_exact_command_keeps_its_lines() -> None:
    assert exact("cat <<E\nx\nE") == "cat <<E\nx\nE"


def test_one_line_leaves_no_way_to_imitate_another_line() -> None:
    assert one_line("root cause\n\nApproval needed\r$ ") == "root cause Approval needed $"


@given(st.text())
def test_no_control_character_ever_passes(text: str) -> None:
    for made in (harmless(text), exact(text)):
        left = {c for c in made if unicodedata.category(c) in ("Cc", "Cs")}
        assert left <= {"\n", "\t"}


@given(st.text(st.characters(codec="utf-8", categories=("L", "N", "P", "S"))))
def test_visible_text_is_never_changed(text: str) -> None:
    assert harmless(text) == text
    assert exact(text) == text
