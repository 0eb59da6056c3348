"""The arguments of a call stay JSON, and a secret is seen behind escapes, keys and lists of words."""

from __future__ import annotations

import json

import pytest

from bot.redact import load_redactor
from tests.redact.cases import secrets

REDACTOR = load_redactor()


@pytest.mark.parametrize(("secret", "text"), list(secrets()))
@pytest.mark.parametrize("ascii_only", [True, False])
def test_a_secret_in_a_text_of_the_arguments_goes(secret: str, text: str, ascii_only: bool) -> None:
    arguments = json.dumps({"hosts": ["web-1"], "command": text, "timeout_s": 30}, ensure_ascii=ascii_only)
    found = REDACTOR.json_text(arguments)
    read = json.loads(found.text)
    assert secret not in read["command"]
    assert read["hosts"] == ["web-1"]
    assert found.found
    assert json.loads(REDACTOR.json_text(found.text).text) == read


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [
        ('{"password": "hunter two\\n\\"x"}', {"password": "[redacted:password]"}),
        ('{"db": {"pwd": 12345678}}', {"db": {"pwd": "[redacted:pwd]"}}),
        ('{"tokens": ["q9X2v7Tn4Rm8", "expired"]}', {"tokens": ["[redacted:token]", "expired"]}),
        ('["mysql", "--password", "hunter2"]', ["mysql", "--password", "[redacted:option]"]),
        (
            '[{"name": "DB_PASSWORD", "value": "x\\ny"}]',
            [{"name": "DB_PASSWORD", "value": "[redacted:password]"}],
        ),
        (
            '{"value": "hunter2", "name": "DB_PASSWORD"}',
            {"value": "[redacted:password]", "name": "DB_PASSWORD"},
        ),
        ('{"a": "password=hunter2", "a": "x"}', {"a": "x"}),
        ('{"password=hunter2": 1}', {"password=[redacted:password]": 1}),
        ('"password=hunter2"', "password=[redacted:password]"),
    ],
)
def test_what_a_key_says_counts(arguments: str, wanted: object) -> None:
    assert json.loads(REDACTOR.json_text(arguments).text) == wanted


@pytest.mark.parametrize(
    "arguments",
    [
        '{ "command":"uptime",  "timeout_s": 3.0 }',
        '{"max_tokens": 4000, "password": "", "token": "expired", "pass": 12, "secret": null, "pwd": false}',
        "",
        "{",
        '{"command": "' + "x" * 100,
        "[" * 50_000,
    ],
)
def test_where_nothing_is_found_every_byte_stays(arguments: str) -> None:
    assert REDACTOR.json_text(arguments).text == arguments


def test_what_is_not_json_is_redacted_as_text() -> None:
    assert REDACTOR.json_text('{"command": "mysql -phunter2').text == '{"command": "mysql -p[redacted:mysql]'
