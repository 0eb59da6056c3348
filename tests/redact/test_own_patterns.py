"""An operator's own patterns add to the packaged ones; what is wrong in them is said with the mend."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from bot.errors import SettingsError
from bot.redact import load_redactor
from bot.redact.rules import packaged
from bot.redact.ways import MOST, portable, ways
from bot.settings import Settings

GOOD = r"""
corp-token:
  keywords: [corp_]
  pattern: 'corp_[a-z0-9]{12}'
badge:
  keywords: [Badge, 工牌]
  pattern: '(?:Badge|工牌) (?P<secret>[0-9]{6,12})'
"""


def test_own_patterns_hit_wherever_their_keyword_stands() -> None:
    redactor = load_redactor(extra=GOOD)
    assert redactor.text("a corp_0123456789ab, Badge 123456; 工牌 654321!").text == (
        "a [redacted:corp-token], Badge [redacted:badge]; 工牌 [redacted:badge]!"
    )
    assert redactor.text("password=hunter2").found == ("password",)


@pytest.mark.parametrize("extra", [None, "", "  \n"])
def test_without_a_file_there_are_the_packaged_rules(extra: str | None) -> None:
    assert load_redactor(extra=extra).text("password=hunter2").found == ("password",)


@pytest.mark.parametrize(
    ("extra", "said"),
    [
        ("a: [", "not YAML"),
        ("- a", "must be a mapping"),
        ("Bad Name: {keywords: [abc], pattern: abcd}", "Bad Name: a name has up to 40"),
        ("github: {keywords: [abc], pattern: abcd}", "github: a packaged rule has this name"),
        ("password: {keywords: [abc], pattern: abcd}", "password: a packaged rule has this name"),
        ("x: {pattern: abcd}", "x: must have the keys keywords and pattern"),
        ("x: {keywords: [abc], pattern: abcd, flags: i}", "x: must have the keys"),
        ("x: {keywords: [], pattern: abcd}", "x: keywords must be a list"),
        ("x: {keywords: [ab], pattern: abcd}", "x: the keyword 'ab' must be text of at least 3"),
        ("x: {keywords: [123], pattern: abcd}", "x: the keyword 123 must be text"),
        ("x: {keywords: [abc], pattern: 12}", "x: pattern must be text"),
        ("x: {keywords: [abc], pattern: 'a('}", "x: not a regular expression"),
        ("x: {keywords: [abc], pattern: '[a-z]*'}", "x: the pattern matches nothing or one letter"),
        ("x: {keywords: [abc], pattern: '(?:)'}", "x: the pattern matches nothing or one letter"),
        ("x: {keywords: [abc], pattern: '.+'}", "x: the pattern matches nothing or one letter"),
        ("x: {keywords: [abc], pattern: 'abc(a+)+$'}", "x: the pattern can take for ever"),
        (r"x: {keywords: [abc], pattern: 'abc(\w+\s?)*z'}", "x: the pattern can take for ever"),
        (r"x: {keywords: [abc], pattern: 'abc\w*\w*\w*z'}", "x: the pattern can take for ever"),
        ("x: {keywords: [abc], pattern: 'abc(a|ab|b)*z'}", "x: the pattern can take for ever"),
        ("x: {keywords: [abc], pattern: 'abc(?:a++)++$'}", "x: a possessive repeat of a group"),
        ("x: {keywords: [abc], pattern: 'abc(?=x(?:ab|c)?+)'}", "x: a possessive repeat of a group"),
        ("x: {keywords: [abc], pattern: '(abc{1,9}){1,9}{1,9}x'}", "x:"),
    ],
)
def test_a_fault_names_the_entry_and_the_mend(extra: str, said: str) -> None:
    with pytest.raises(SettingsError, match=re.escape(f"OPSTHREAD_REDACT: {said}")):
        load_redactor(extra=extra)


@pytest.mark.parametrize(
    "pattern", ["abc(?>(?:a++)+)$", "abc[a-z]+$", r"abc(?>(?:\w++ )+)x", "abc[a-z]{8,64}-[0-9]{1,9}"]
)
def test_a_pattern_that_cannot_run_away_is_taken(pattern: str) -> None:
    load_redactor(extra=f"x: {{keywords: [abc], pattern: '{pattern}'}}")


def test_no_packaged_pattern_can_run_away() -> None:
    patterns = [rule.pattern for rule in packaged().rules] + [token.pattern for token in packaged().tokens]
    assert [p.pattern for p in patterns if ways(p.pattern, p.flags & re.IGNORECASE) > MOST] == []
    assert [p.pattern for p in patterns if not portable(p.pattern, p.flags & re.IGNORECASE)] == []


def test_the_setting_names_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "redact.yml"
    monkeypatch.setenv("OPSTHREAD_REDACT", str(path))
    with pytest.raises(SettingsError, match="OPSTHREAD_REDACT: cannot read"):
        Settings().extra_patterns()
    path.write_text(GOOD, "utf-8")
    assert Settings().extra_patterns() == GOOD
    monkeypatch.delenv("OPSTHREAD_REDACT")
    assert Settings().extra_patterns() is None
