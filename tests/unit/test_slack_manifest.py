"""manifest.yml asks for what the code uses, and for nothing else."""

import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from slack_bolt.async_app import AsyncApp
from slack_sdk.web.async_client import AsyncWebClient

from bot.settings import Settings
from bot.slack import blocks, listeners, memory_cards
from tests.fakes.slack.rules import METHODS, SHARED

ROOT = Path(__file__).parents[2]
MANIFEST: dict[str, Any] = yaml.safe_load((ROOT / "manifest.yml").read_text(encoding="utf-8"))
BOT = MANIFEST["oauth_config"]["scopes"]["bot"]
OPTIONAL = MANIFEST["oauth_config"]["scopes"]["bot_optional"]

KINDS = ("channels", "groups", "im", "mpim")
# docs.slack.dev/reference/methods: what each method we call needs; {kind} stands for every kind of channel.
NEEDS = {
    "auth_test": (),
    "apps_connections_open": (),
    "chat_postMessage": ("chat:write",),
    "chat_postEphemeral": ("chat:write",),
    "chat_update": ("chat:write",),
    "conversations_history": tuple(f"{kind}:history" for kind in KINDS),
    "conversations_replies": tuple(f"{kind}:history" for kind in KINDS),
    "conversations_info": tuple(f"{kind}:read" for kind in KINDS),
    "conversations_members": tuple(f"{kind}:read" for kind in KINDS),
    "users_conversations": tuple(f"{kind}:read" for kind in KINDS),
    "reactions_add": ("reactions:write",),
    "users_info": ("users:read",),
    "usergroups_users_list": ("usergroups:read",),
}
# What an event needs to be delivered: docs.slack.dev/reference/events
DELIVERY = {"app_mention": "app_mentions:read", **{f"message.{kind}": f"{kind}:history" for kind in KINDS}}


def called() -> set[str]:
    """Web API methods that bot/slack calls."""
    code = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "bot" / "slack").glob("*.py"))
    names = {name for name in dir(AsyncWebClient) if re.match(r"[a-z]+_", name) and name != "api_call"}
    return {name for name in re.findall(r"\.(\w+)\(", code) if name in names}


def test_every_method_we_call_is_known_to_the_fake_and_to_this_test() -> None:
    assert called() <= set(NEEDS)
    assert {name.replace("_", ".") for name in called()} <= {re.sub(r"_", ".", m) for m in METHODS}


def test_scopes_are_those_of_the_methods_events_and_commands() -> None:
    needed = {scope for name in called() for scope in NEEDS[name]}
    needed |= {DELIVERY[event] for event in MANIFEST["settings"]["event_subscriptions"]["bot_events"]}
    needed |= {"commands"} if MANIFEST["features"]["slash_commands"] else set()
    assert needed == {*BOT, *OPTIONAL}
    assert OPTIONAL == ["usergroups:read"]
    assert sorted(BOT) == BOT


def test_events_are_those_we_listen_to() -> None:
    subscribed = MANIFEST["settings"]["event_subscriptions"]["bot_events"]
    assert {event.partition(".")[0] for event in subscribed} == set(listeners.EVENTS)
    assert sorted(subscribed) == sorted(DELIVERY)


def test_the_command_and_the_buttons_are_registered() -> None:
    (command,) = MANIFEST["features"]["slash_commands"]
    assert command["command"] == Settings.model_fields["command_name"].default
    assert MANIFEST["settings"]["interactivity"]["is_enabled"]
    about_memory = {blocks.MEMORIES, memory_cards.FORGET, memory_cards.SHARE}
    assert {blocks.APPROVE, blocks.DENY, blocks.STOP, *about_memory} == set(listeners.ACTIONS)


def test_lengths_are_within_slacks() -> None:
    shown = MANIFEST["display_information"]
    assert len(shown["name"]) <= 35
    assert len(shown["description"]) <= 140
    assert 175 <= len(shown["long_description"]) <= 4_000
    assert len(MANIFEST["features"]["slash_commands"][0]["command"]) <= 32


SCHEMA = SHARED.parent / "slack" / "manifest.schema.json"


@pytest.mark.skipif(not SCHEMA.is_file(), reason=f"{SCHEMA} is not there: the manifest's shape is not tried")
def test_slack_would_take_the_shape() -> None:
    jsonschema.validate(MANIFEST, json.loads(SCHEMA.read_text(encoding="utf-8")))


def test_listeners_register_without_a_connection() -> None:
    app = AsyncApp(token="xoxb-x", process_before_response=True)
    listeners.register(app, us=None, reception=None, jobs=None, command_name="/ops")  # type: ignore[arg-type]
    assert len(app._async_listeners) == len(listeners.EVENTS) + 4
