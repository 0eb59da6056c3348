"""The words of a text: names of operators whole and in parts, stems, pairs of characters, and no end of nothing."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.recall.tokens import LONGEST, tokens


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("nginx-1.24.0", {"nginx-1.24.0", "nginx", "1.24.0", "1.24"}),
        ("v15.18", {"v15.18", "15.18"}),
        ("web-1.example.com", {"web-1.example.com", "web", "1.example.com", "exampl", "com"}),
        ("502", {"502"}),
        ("10.0.0.11:8080", {"10.0.0.11:8080", "10.0.0.11", "10.0", "8080"}),
        (
            "/var/log/nginx/error.log",
            {"var/log/nginx/error.log", "var", "log", "nginx", "error.log", "error"},
        ),
        ("Is nginx on web-1?", {"nginx", "web-1", "web"}),
        ("DISKS are failing", {"disk", "fail"}),
        ("redis and postgres", {"redis", "postgres"}),
        ("It doesn't restart", {"restart"}),
        ("ops@example.com", {"ops@example.com", "op", "example.com", "exampl", "com"}),
        ("ＮＧＩＮＸ", {"nginx"}),
        ("Straße größe", {"straße", "größe"}),
        ("磁盘满了 on db-1", {"磁盘", "盘满", "满了", "db-1", "db"}),
        ("盘", {"盘"}),
        ("这是什么", set()),
        ("what is it", set()),
        ("  ?! ", set()),
        ("", set()),
    ],
)
def test_tokens_of_a_text(text: str, found: set[str]) -> None:
    assert set(tokens(text)) == found


@pytest.mark.parametrize(
    ("stored", "asked"),
    [
        ("nginx-1.24.0 on web-1", "which nginx"),
        ("nginx-1.24.0", "1.24"),
        ("the certificates were renewed", "renewing a certificate"),
        ("数据库连接超时", "连接为什么超时"),
        ("see /etc/nginx/nginx.conf", "nginx.conf"),
        ("answers 502 again", "why 502?"),
        ("kubernetes", "Kubernetes"),
    ],
)
def test_what_is_asked_meets_what_is_stored(stored: str, asked: str) -> None:
    assert set(tokens(stored)) & set(tokens(asked))


@given(st.text(max_size=300))
def test_normalised_text_has_the_same_tokens(text: str) -> None:
    assert tokens(unicodedata.normalize("NFKC", text)) == tokens(text)


@given(st.text(alphabet="a1./:@+-_ 磁盘的Éß\x00\ud800İ", max_size=400))
def test_tokens_are_distinct_short_and_no_more_than_the_text_is_long(text: str) -> None:
    found = tokens(text)
    assert len(set(found)) == len(found)
    assert all(0 < len(token) <= LONGEST for token in found)
    assert sum(map(len, found)) <= 8 * len(text) + 8


@pytest.mark.parametrize("sign", ["a.", "a-", "1.", "/", "a/b.c-", "磁盘", "_", "@a:", "ﷺ"])
def test_a_hostile_text_gives_few_tokens(sign: str) -> None:
    assert len(tokens(sign * 300_000)) <= 20_000


def test_tokens_hold_nothing_that_postgres_refuses() -> None:
    assert all("\x00" not in token for token in tokens("a\x00b \ud800c"))
    for token in tokens("a\ud800b.c\x00d 磁\ud800盘"):
        token.encode("utf-8")
