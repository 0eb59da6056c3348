"""Words and settings that no command can use: one line that says so, and the right exit status."""

from __future__ import annotations

import sys
from pathlib import Path

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


@pytest.mark.parametrize(
    ("words", "settings", "status", "says"),
    [
        (["ask", "x"], {"OPSTHREAD_HOSTS": "/nowhere/hosts.yml"}, 2, "/nowhere/hosts.yml does not exist"),
        (["ask", "x"], {"OPSTHREAD_MAX_STEPS": "many"}, 2, "OPSTHREAD_MAX_STEPS"),
        (["ask", "x"], {"OPSTHREAD_COLOUR": "red"}, 2, "OPSTHREAD_COLOUR is not a setting"),
        (["ask", "x"], {"DATABASE_URL": "mysql://x"}, 2, "DATABASE_URL: must begin with postgresql://"),
        (["ask", "  "], {}, 2, "the question is empty"),
        (["serve"], {}, 2, "SLACK_BOT_TOKEN and SLACK_APP_TOKEN must be set"),
        (["approve", "7"], {}, 1, "there is no approval 7"),
        (["nonsense"], {}, 2, "No such command"),
    ],
)
def test_bad_words_and_settings_get_one_clear_line(
    words: list[str],
    settings: dict[str, str],
    status: int,
    says: str,
    database_url: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    given = {"OPSTHREAD_DATA_DIR": str(tmp_path), "DATABASE_URL": database_url, **settings}
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "argv", ["opsthread", *words])
    with pytest.raises(SystemExit) as ended:
        main()
    told = "".join(capsys.readouterr())
    assert ended.value.code == status, told
    assert says in told
    assert "Traceback" not in told
