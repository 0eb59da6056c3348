"""How we reach Slack: every client goes to SLACK_API_URL, and past a proxy when that is this machine."""

from __future__ import annotations

from urllib.parse import urlsplit

import aiohttp
from slack_sdk.http_retry.async_handler import AsyncRetryHandler
from slack_sdk.http_retry.builtin_async_handlers import (
    AsyncConnectionErrorRetryHandler,
    AsyncRateLimitErrorRetryHandler,
    AsyncServerErrorRetryHandler,
)
from slack_sdk.web.async_client import AsyncWebClient

CALL_S = 30  # seconds a call may take


def client(
    token: str, api_url: str, *, retrying: bool, session: aiohttp.ClientSession | None = None
) -> AsyncWebClient:
    """retrying: for reads. Whatever posts goes without, since a blind second try may post twice."""
    handlers: list[AsyncRetryHandler] = [
        AsyncConnectionErrorRetryHandler(max_retry_count=2),
        AsyncRateLimitErrorRetryHandler(max_retry_count=3),
        AsyncServerErrorRetryHandler(max_retry_count=2),
    ]
    made = AsyncWebClient(
        token=token,
        base_url=api_url,
        timeout=CALL_S,
        session=session,
        retry_handlers=handlers if retrying else [],
    )
    if local(api_url):
        made.proxy = None  # the SDK takes HTTP(S)_PROXY, and knows no NO_PROXY
    return made


def local(api_url: str) -> bool:
    """Whether the address is this machine's own."""
    host = urlsplit(api_url).hostname or ""
    return host in ("localhost", "::1") or host.startswith("127.")
