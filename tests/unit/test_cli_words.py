"""Words of a command line that no command can read."""

from __future__ import annotations

import sys

import pytest

from bot.cli.main import main


@pytest.mark.parametrize("words", [["ask", "\udcff"], ["sessions", "list", "--user", "a\udcffb"], ["\udcff"]])
def test_a_word_that_is_not_utf_8_is_refused_in_one_line(
    words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["opsthread", *words])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert capsys.readouterr().err == "opsthread: a word of this command is not UTF-8 text\n"
