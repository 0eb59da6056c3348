"""Judging error answers: what can be done about each, in the words of several endpoints."""

from __future__ import annotations

from typing import Any

import pytest

from bot.model.faults import Kind, classify, scrub


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (500, "oops", Kind.TRANSIENT),
        (
            529,
            {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}},
            Kind.TRANSIENT,
        ),
        (None, {"error": "something"}, Kind.TRANSIENT),
        (None, {"error": {"message": "no", "code": "401"}}, Kind.REFUSED),
        (None, {"error": {"message": "no", "type": "invalid_request_error"}}, Kind.REFUSED),
        (400, {"error": {"message": "busy", "code": "server_error"}}, Kind.TRANSIENT),
        (400, {"detail": "Input is too long for requested model"}, Kind.CONTEXT),
        (400, {"message": "prompt is too long: 210000 tokens > 200000 maximum"}, Kind.CONTEXT),
        (400, {"error": {"message": "Unrecognized request argument: stream_options"}}, Kind.PLAIN_OPTIONS),
        (422, {"detail": [{"loc": ["body", "stream_options"], "msg": "extra"}]}, Kind.PLAIN_OPTIONS),
        (400, {"error": {"message": "Streaming is not supported for this model"}}, Kind.PLAIN_REPLY),
        (400, {"error": {"message": '"auto" tool choice requires --enable-auto-tool-choice'}}, Kind.REFUSED),
        (400, {"error": {"message": "Web search options not supported with this model."}}, Kind.REFUSED),
        (404, None, Kind.REFUSED),
    ],
)
def test_a_fault_is_judged_by_status_code_and_words(status: int | None, body: Any, kind: Kind) -> None:
    assert classify(status, body).kind is kind


def test_the_words_of_a_provider_behind_the_endpoint_are_shown() -> None:
    body = {"error": {"code": 429, "message": "Provider returned error", "metadata": {"raw": "try later"}}}
    assert classify(429, body).detail == "Provider returned error: try later"


def test_long_and_many_lined_words_become_one_short_line() -> None:
    detail = classify(500, "<html>\n<h1>Bad gateway</h1>" + "x" * 900 + "</html>").detail
    assert detail.startswith("Bad gateway x")
    assert len(detail) <= 400
    assert "\n" not in detail


@pytest.mark.parametrize(
    "text",
    [
        "Incorrect key sk-proj-abcdef123456.",
        "Incorrect key sk-abc***wxyz",
        "sent Authorization: Bearer abcdefgh",
        "key my-own-secret",
    ],
)
def test_keys_are_masked(text: str) -> None:
    masked = scrub(text, "my-own-secret")
    assert "[key]" in masked
    assert not any(secret in masked for secret in ("abc", "my-own-secret"))
