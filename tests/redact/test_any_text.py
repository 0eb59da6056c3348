"""Any text at all: nothing breaks, what is redacted stays, and time grows with the length alone."""

from __future__ import annotations

import base64
import json
import threading
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.redact import load_redactor
from bot.redact.redactor import lower
from tests.redact.cases import harmless, secrets

OWN = "own/value+of=ours&more"
REDACTOR = load_redactor([OWN, "short"])
TEXTS = [text for _, text in secrets()] + harmless()
WORDS = [
    "password", "secret", "token", "api_key", "=", ": ", '"', "'", "\\", "\n", " ", ",", "--", "://", "@", ":", "$6$",
    "curl -u ", "mysql ", "-p", "密码", "是", "“", "”", "-----BEGIN PRIVATE KEY-----", "-----END PRIVATE KEY-----",
    "kind: Secret\n", "data:\n", "  a: b\n", "[redacted:", "[redacted:token]", "]", "İ", "\0", "\udcff", OWN, "a1B2",
    "eyJ", "ghp_" + "a1B2c3" * 6, "x" * 20, "machine ", "login ", "Cookie: ", "Bearer ", "{", "}", "hunter2",
]  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(st.lists(st.one_of(st.sampled_from(WORDS), st.sampled_from(TEXTS), st.text(max_size=6)), max_size=14))
def test_what_is_redacted_stays_as_it_is(parts: list[str]) -> None:
    once = REDACTOR.text("".join(parts))
    twice = REDACTOR.text(once.text)
    assert (twice.text, twice.found) == (once.text, ())
    assert OWN not in once.text


@settings(max_examples=200, deadline=None)
@given(st.text(alphabet=st.characters(), max_size=80))
def test_any_text_is_taken(text: str) -> None:
    assert len(lower(text)) == len(text)
    REDACTOR.text(text)
    REDACTOR.json_text(json.dumps({text: text}))


@settings(max_examples=200, deadline=None)
@given(st.sampled_from([case for case in secrets() if "\n" not in case[1]]), st.sampled_from(harmless()))
def test_a_line_before_and_after_changes_nothing(case: tuple[str, str], line: str) -> None:
    secret, text = case
    assert secret not in REDACTOR.text(f"{line}\n{text}\n{line}").text


@pytest.mark.parametrize(
    "spelled",
    [
        OWN,
        f"x{OWN}y",
        quote(OWN),
        quote(OWN, safe=""),
        quote(OWN, safe="").lower(),
        quote_plus(OWN),
        json.dumps(OWN)[1:-1],
        *(base64.b64encode(b"abc"[:n] + OWN.encode() + b":::"[:m]).decode() for n in range(3) for m in range(3)),
        base64.urlsafe_b64encode(b"ops:" + OWN.encode()).decode(),
    ],
)  # fmt: skip
def test_our_own_values_go_in_every_spelling(spelled: str) -> None:
    found = REDACTOR.text(f"echo {spelled} | cat")
    assert "own-value" in found.found
    assert OWN not in found.text
    assert "value" not in found.text.replace("[redacted:own-value]", "")


def test_a_value_of_under_8_characters_is_left_out() -> None:
    assert REDACTOR.text("short and shorter").found == ()


@pytest.mark.parametrize("name", ["deploy-{s}.log", "/tmp/{s}/x", "backup_{s}.tar.gz", "{s}"])
def test_a_token_in_the_name_of_a_file_goes(name: str) -> None:
    secret = "glpat-" + "q8Wz2Xv5Tn7Rm3Kp1Lb9"
    assert secret not in REDACTOR.text(name.format(s=secret)).text


# Each is the beginning of something that a rule looks for; repeated, it must not be looked for again and again.
STARTS = [
    "pass", "password=", 'password="', "password=${", "password=a,", "secret", "token: ", "_key", "://", "://a:", "curl ",
    'curl "', "curl -x '", "mysql ", "--", "--a", "-----BEGIN PRIVATE KEY-----\n", "-----END PRIVATE KEY-----\n",
    "kind: Secret\n", "kind: Secret\ndata:\n", '"data":{', "eyJ", "sk-", "MT", "a" * 40, "$", "密码", "密码：“",
    "[redacted:", "[redacted:x]", "password=[redacted:x]", "machine a ", "login a ", "cookie: a=", "\\", '\\"', "\n", "İ",
]  # fmt: skip


@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("between", ["", "z "])
def test_hostile_text_is_done_in_the_time_of_its_length(start: str, between: str) -> None:
    """100,000 characters take well under a second; where time grew with the square, they would take minutes."""
    part = start + between
    REDACTOR.text((part * (100_000 // len(part) + 1))[:100_000])


def test_threads_share_a_redactor() -> None:
    wanted = [REDACTOR.text(text) for text in TEXTS]
    got: list[bool] = []
    work = [
        threading.Thread(target=lambda: got.append([REDACTOR.text(text) for text in TEXTS] == wanted))
        for _ in range(4)
    ]
    for thread in work:
        thread.start()
    for thread in work:
        thread.join()
    assert got == [True] * 4
