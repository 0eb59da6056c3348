"""Wrong settings are refused at the start, each by its name and with what to do."""

from __future__ import annotations

import pytest

from bot import settings
from bot.errors import SettingsError


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("SLACK_BOT_TOKEN", "xapp-1-swapped", "SLACK_BOT_TOKEN: must begin with xoxb-: it is the bot token"),
        (
            "SLACK_APP_TOKEN",
            "xoxb-swapped",
            "SLACK_APP_TOKEN: must begin with xapp-: it is the app-level token",
        ),
        ("OPENAI_BASE_URL", "bar", "OPENAI_BASE_URL: must begin with http:// or https://"),
        ("OPSTHREAD_TIMEZONE", "Mars", "OPSTHREAD_TIMEZONE: is not a time zone"),
        ("OPSTHREAD_NO_SUCH", "1", "OPSTHREAD_NO_SUCH is not a setting of opsthread"),
    ],
)
def test_a_wrong_value_is_named_and_not_shown(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, said: str
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(SettingsError) as caught:
        settings.load()
    assert said in str(caught.value)
    assert "swapped" not in str(caught.value)
