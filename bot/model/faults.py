"""What went wrong with a request, and what a person or the loop can do about it. Pure.

The wording of endpoints differs and few send a code for everything, so their sentences are searched for the
words that OpenAI, Groq, OpenRouter, Ollama and vLLM use. What is not recognised is shown as it is.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, assert_never

from bot.errors import ContextTooLong, ModelError, ModelRefused, ModelUnavailable


class Kind(StrEnum):
    """What can be done about a fault."""

    TRANSIENT = "transient"  # the same request may work in a moment
    BAD_CALL = "bad call"  # the model wrote a call its endpoint threw away; another try often differs
    CONTEXT = "context"  # too long: send less
    PLAIN_OPTIONS = "plain options"  # the endpoint does not know stream_options
    PLAIN_REPLY = "plain reply"  # the endpoint does not stream
    REFUSED = "refused"  # a person must change something


@dataclass(frozen=True, slots=True)
class Fault:
    """detail: the endpoint's own words. advice: ours, what to do. retry_after: seconds it asks us to wait."""

    kind: Kind
    detail: str
    advice: str = ""
    retry_after: float | None = None


_CONTEXT = re.compile(
    r"context.{0,3}length|context window|maximum context|too many tokens|prompt is too long"
    r"|input.{0,20}too (long|large)|reduce the length|exceeds? .{0,40}\btokens?\b",
    re.IGNORECASE,
)
_NO_TOOLS = re.compile(
    r"does ?n[o']t support (the )?(tool|function)|tool.{0,40}(not|n't) support|support.{0,20}tool use"
    r"|no endpoints found that support tool|(enable-auto-tool-choice)|unsupported.{0,40}'?tools",
    re.IGNORECASE,
)
_NO_STREAM = re.compile(r"stream(ing)?\b.{0,60}(not|n't|un)\s?-?(support|allow|available)", re.IGNORECASE)
_NO_STREAM_TOO = re.compile(r"(not|n't|un)\s?-?(support|allow).{0,40}\bstream(ing)?\b", re.IGNORECASE)
_TOOLS_ADVICE = "a model with tool support is needed; set OPSTHREAD_MODEL to one"
_LONG_ADVICE = "lower OPSTHREAD_MAX_TOKENS, or use a model with a longer context"
_PASSING_CODES = {
    "rate_limit_exceeded",
    "overloaded_error",
    "server_error",
    "timeout",
    "internal_server_error",
}
_MONEY = {"insufficient_quota", "billing_hard_limit_reached", "insufficient_balance"}


def classify(status: int | None, body: Any, *, retry_after: float | None = None) -> Fault:
    """Judge an error answer.

    status: the HTTP status, or None for an error inside a reply that began with 200; then the body's own
    status or code decides, and what says nothing of itself counts as transient.
    """
    error = _error(body)
    code = str(error.get("code") or error.get("type") or "")
    detail = _detail(error, body)
    status = status or _status(error)
    if status == 413:  # before the codes: one provider calls a request above its limit "rate_limit_exceeded"
        return Fault(Kind.CONTEXT, detail, _LONG_ADVICE)
    if code == "tool_use_failed":
        advice = "the model's tool call did not fit; try again, or choose another model with OPSTHREAD_MODEL"
        return Fault(Kind.BAD_CALL, detail, advice)
    if code in _MONEY or status == 402:
        advice = "the account of OPENAI_API_KEY has no credit left; top it up or use another key"
        return Fault(Kind.REFUSED, detail, advice)
    if status is None or status in (408, 409, 425, 429) or status >= 500 or code in _PASSING_CODES:
        return Fault(Kind.TRANSIENT, detail, retry_after=retry_after)
    if status in (401, 403):
        advice = "check OPENAI_API_KEY, and that it may use this endpoint and model"
        return Fault(Kind.REFUSED, detail, advice)
    if status == 404:
        return Fault(Kind.REFUSED, detail, _not_found(code, detail))
    return _bad_request(status, str(error.get("param") or ""), code=code, detail=detail)


def _not_found(code: str, detail: str) -> str:
    if _NO_TOOLS.search(detail):
        return _TOOLS_ADVICE
    if "model" in (code + detail).lower():
        return "set OPSTHREAD_MODEL to a model of this endpoint"
    return "check OPENAI_BASE_URL (it often ends in /v1) and OPSTHREAD_MODEL"


def _bad_request(status: int, param: str, *, code: str, detail: str) -> Fault:
    if code == "context_length_exceeded" or _CONTEXT.search(detail):
        return Fault(Kind.CONTEXT, detail, _LONG_ADVICE)
    if param == "stream_options" or "stream_options" in detail:
        return Fault(Kind.PLAIN_OPTIONS, detail)
    if param == "stream" or _NO_STREAM.search(detail) or _NO_STREAM_TOO.search(detail):
        return Fault(Kind.PLAIN_REPLY, detail)
    if param in ("tools", "tool_choice") or _NO_TOOLS.search(detail):
        return Fault(Kind.REFUSED, detail, _TOOLS_ADVICE)
    return Fault(
        Kind.REFUSED, detail, "the model may not take such requests; try another with OPSTHREAD_MODEL"
    )


def _error(body: Any) -> dict[str, Any]:
    """The error object; endpoints put it under `error`, under `detail`, or send it bare."""
    if isinstance(body, list) and len(body) == 1:
        body = body[0]
    if not isinstance(body, dict):
        return {}
    inner = body.get("error") or body.get("detail")
    return inner if isinstance(inner, dict) else body


def _status(error: dict[str, Any]) -> int | None:
    for key in ("status_code", "status", "code"):
        value = error.get(key)
        number = int(value) if isinstance(value, str) and value.isdigit() else value
        if isinstance(number, int) and 400 <= number <= 599:
            return number
    return 400 if error.get("type") == "invalid_request_error" else None


def _detail(error: dict[str, Any], body: Any) -> str:
    """One line of the endpoint's own words, with what the provider behind it said."""
    said = error.get("message") or error.get("error") or error.get("detail") or error.get("msg") or body
    metadata = error.get("metadata")
    behind = metadata.get("raw") if isinstance(metadata, dict) else None
    text = f"{said}: {behind}" if isinstance(behind, str) else str(said or "")
    text = re.sub(r"<[^>]*>", " ", text) if text.lstrip().startswith("<") else text
    text = " ".join(text.split())
    return text if len(text) <= 400 else text[:399] + "…"


def scrub(text: str, key: str) -> str:
    """Masks the key, and anything that looks like one, in words of the endpoint."""
    if len(key) >= 6:  # shorter ones are placeholders of endpoints that want none
        text = text.replace(key, "[key]")
    text = re.sub(r"\b(sk|gsk|key|xai|hf|pk)[-_][A-Za-z0-9*_-]{6,}", "[key]", text)
    return re.sub(r"(?i)\bbearer\s+\S+", "Bearer [key]", text)


def as_error(fault: Fault, *, place: str, model: str, tries: int) -> ModelError:
    """The error to raise for a fault that is final. place: the endpoint's host, for the person."""
    said = f": {fault.detail}" if fault.detail else ""
    advice = f"; {fault.advice}" if fault.advice else ""
    match fault.kind:
        case Kind.CONTEXT:
            return ContextTooLong(f"the request is too long for model {model} at {place}{said}{advice}")
        case Kind.REFUSED | Kind.PLAIN_OPTIONS | Kind.PLAIN_REPLY:
            return ModelRefused(f"{place} refused the request for model {model}{said}{advice}")
        case Kind.BAD_CALL | Kind.TRANSIENT:
            times = "1 try" if tries == 1 else f"{tries} tries"
            advice = advice or '; say "continue" to try again'
            return ModelUnavailable(f"no usable reply from model {model} at {place} in {times}{said}{advice}")
        case _:
            assert_never(fault.kind)
