"""Payload -> Incoming: what each kind means, and that nothing Slack sends breaks it."""

import json
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.slack.incoming import Clicked, Commanded, Deleted, Ignored, Said, Us, parse
from tests.fakes.slack.rules import SHARED

US = Us("T1", "U0BOT")
PAYLOADS = SHARED / "payloads"


def event(kind: str = "message", *, body: dict[str, Any] | None = None, **fields: Any) -> dict[str, Any]:
    given: dict[str, Any] = {"type": kind, "user": "U1", "text": "hi", "ts": "1.000001", "channel": "C1"}
    merged = {k: v for k, v in {**given, **fields}.items() if v is not None}
    return {"type": "event_callback", "event_id": "Ev1", "event": merged, **(body or {})}


def said(kind: str = "message", **fields: Any) -> Said:
    found = parse(event(kind, **fields), US)
    assert isinstance(found, Said), found
    return found


def test_a_mention_and_its_twin_are_one_message() -> None:
    mention = said("app_mention", text="<@U0BOT> hi")
    twin = said("message", text="<@U0BOT> hi", channel_type="channel")
    assert mention.message_key == twin.message_key == "T1:C1:1.000001"
    assert mention.mentions_us
    assert twin.mentions_us
    assert mention.session_key == "C1:1.000001"


def test_a_reply_belongs_to_its_root_and_a_root_with_replies_is_no_reply() -> None:
    assert said(thread_ts="0.5").session_key == "C1:0.5"
    assert said(thread_ts="1.000001").thread_ts is None


def test_a_direct_message_is_known_by_its_kind_or_its_channel() -> None:
    assert said(channel="D1", channel_type="im").is_dm
    assert said(channel="D1").is_dm
    assert not said(channel="G1", channel_type="mpim").is_dm


def test_the_session_is_the_same_with_and_without_a_team_id() -> None:
    with_team = parse(event(body={"team_id": "T1"}, channel="D1", thread_ts="0.5", team="T1"), US)
    without = parse(event(channel="D1", thread_ts="0.5"), US)
    assert isinstance(with_team, Said)
    assert isinstance(without, Said)
    assert (with_team.team, with_team.session_key) == (without.team, without.session_key)


def test_a_deleted_message_and_the_tombstone_of_a_root_are_known_by_their_old_key() -> None:
    gone = event(subtype="message_deleted", deleted_ts="1.000001", ts="2.000000", user=None, text=None)
    assert parse(gone, US) == Deleted("T1:C1:1.000001")
    left = {"type": "message", "subtype": "tombstone", "ts": "1.000001", "user": "USLACKBOT"}
    assert parse(event(subtype="message_changed", message=left, ts="2.0"), US) == Deleted("T1:C1:1.000001")
    edited = {"type": "message", "ts": "1.000001", "user": "U1", "text": "hi!"}
    assert isinstance(parse(event(subtype="message_changed", message=edited, ts="2.0"), US), Ignored)


@pytest.mark.parametrize("subtype", ["file_share", "thread_broadcast"])
def test_subtypes_that_people_write_are_messages(subtype: str) -> None:
    found = said(subtype=subtype, files=[{"id": "F1", "name": "a.png"}, {"id": "F2"}])
    assert found.files == ("a.png", "F2")


@pytest.mark.parametrize(
    "fields",
    [
        {"subtype": "message_changed"},
        {"subtype": "message_deleted"},
        {"subtype": "bot_message"},
        {"subtype": "channel_join"},
        {"subtype": "document_mention"},
        {"bot_id": "B1"},
        {"user": "U0BOT"},
        {"user": None},
        {"ts": None},
    ],
)
def test_what_is_not_a_persons_new_message_is_ignored(fields: dict[str, Any]) -> None:
    assert isinstance(parse(event(**fields), US), Ignored)


def test_another_workspaces_event_is_ignored_and_an_org_install_is_not() -> None:
    other = {"authorizations": [{"team_id": "T9"}]}
    org = {"authorizations": [{"team_id": None, "enterprise_id": "E1"}]}
    assert isinstance(parse(event(body=other), US), Ignored)
    assert isinstance(parse(event(body=org), US), Said)


def test_a_shared_channel_is_told() -> None:
    found = parse(event(body={"is_ext_shared_channel": True}), US)
    assert isinstance(found, Said)
    assert found.shared


def test_a_click_carries_its_value_and_its_place() -> None:
    found = parse(
        {
            "type": "block_actions",
            "user": {"id": "U1", "team_id": "T1"},
            "container": {"message_ts": "2.0", "channel_id": "C1", "thread_ts": "1.0"},
            "channel": {"id": "C1"},
            "actions": [{"action_id": "approve", "value": "token"}],
        },
        US,
    )
    assert found == Clicked("T1", "C1", "1.0", "2.0", "U1", "T1", "approve", "token")


def test_a_slash_command_carries_its_words() -> None:
    payload = {
        "command": "/ops",
        "text": "search a &amp; b",
        "user_id": "U1",
        "channel_id": "C1",
        "response_url": "u",
    }
    assert parse(payload, US) == Commanded("T1", "C1", "U1", "/ops", "search a & b", "u")


@pytest.mark.skipif(not PAYLOADS.is_dir(), reason=f"{PAYLOADS} is not there: recorded payloads are not tried")
@pytest.mark.parametrize(
    "path", sorted(PAYLOADS.glob("*.json")) if PAYLOADS.is_dir() else [], ids=lambda p: p.stem
)
def test_every_recorded_payload_is_read_without_a_fault(path: Path) -> None:
    recorded = json.loads(path.read_text(encoding="utf-8"))
    payload = recorded.get("payload") or dict(parse_qsl(recorded.get("form_body", "")))
    if "envelope_id" in payload:
        payload = payload.get("payload", {})
    wrapped = payload.get("type") == "event_callback" or "command" in payload or "actions" in payload
    body = payload if wrapped else {"type": "event_callback", "event": payload}
    us = Us(body.get("team_id") or "T1", (body.get("authorizations") or [{}])[0].get("user_id") or "U0BOT")
    found = parse(body, us)
    inner = body.get("event", {})
    from_person = inner.get("user") not in (None, us.bot_user) and not inner.get("bot_id")
    if inner.get("type") in ("app_mention", "message") and from_person:
        plain = inner.get("subtype") in (None, "file_share", "thread_broadcast")
        assert isinstance(found, Said) is plain
    elif "command" in body:
        assert isinstance(found, Commanded)
    elif body.get("type") == "block_actions" and body.get("channel"):
        assert isinstance(found, Clicked)
    if isinstance(found, Said):
        assert "<@" + us.bot_user not in found.plain(us, {})


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["type", "event", "user", "channel", "ts", "actions", "command", "user_id", "text", "files"]
            ),
            inner,
            max_size=6,
        )
    ),
    max_leaves=20,
)


@given(st.dictionaries(st.sampled_from(["type", "event", "actions", "channel", "user", "container"]), _JSON))
def test_nonsense_is_ignored_or_read_but_never_raises(payload: dict[str, Any]) -> None:
    for kind in ("event_callback", "block_actions"):
        assert parse({**payload, "type": kind}, US) is not None
