"""What the fake Slack demands of every call: arguments, limits, and the published schemas where they lie near."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import jsonschema

SHARED = Path(__file__).resolve().parents[4] / "shared" / "slack"
SCHEMAS = {"chat.postMessage": "PostMessage", "chat.update": "Update", "chat.postEphemeral": "Ephemeral"}
_BROADCAST = re.compile(r"<!(channel|here|everyone)\b")


@dataclass(frozen=True)
class Method:
    """required and optional argument names; app: needs the app-level token."""

    required: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    app: bool = False


_POST = (
    "blocks",
    "metadata",
    "mrkdwn",
    "reply_broadcast",
    "text",
    "thread_ts",
    "unfurl_links",
    "unfurl_media",
)
METHODS: Mapping[str, Method] = {
    "apps.connections.open": Method(app=True),
    "auth.test": Method(),
    "chat.getPermalink": Method(("channel", "message_ts")),
    "chat.postEphemeral": Method(("channel", "user"), ("blocks", "text", "thread_ts")),
    "chat.postMessage": Method(("channel",), _POST),
    "chat.update": Method(("channel", "ts"), ("blocks", "metadata", "text")),
    "conversations.history": Method(
        ("channel",), ("cursor", "include_all_metadata", "inclusive", "latest", "limit", "oldest")
    ),
    "conversations.info": Method(("channel",), ("include_locale", "include_num_members")),
    "conversations.members": Method(("channel",), ("cursor", "limit")),
    "conversations.open": Method((), ("channel", "users", "return_im")),
    "conversations.replies": Method(
        ("channel", "ts"), ("cursor", "include_all_metadata", "inclusive", "latest", "limit", "oldest")
    ),
    "reactions.add": Method(("channel", "name", "timestamp")),
    "usergroups.users.list": Method(("usergroup",), ("include_disabled", "team_id")),
    "users.conversations": Method((), ("cursor", "exclude_archived", "limit", "team_id", "types", "user")),
    "users.info": Method(("user",), ("include_locale",)),
}


def faults(method: str, args: Mapping[str, Any], shared: Path | None) -> list[str]:
    """Everything that is wrong with a call; empty: Slack would take it."""
    known = METHODS.get(method)
    if known is None:
        return [f"{method} is no method this fake knows"]
    found = [f"{name} is missing" for name in known.required if args.get(name) in (None, "")]
    allowed = {*known.required, *known.optional, "token", "team_id", "app_token"}
    found += [f"{name} is no argument of {method}" for name in args if name not in allowed]
    if method in SCHEMAS:
        found += _message_faults(method, args)
        if shared is not None:
            found += _schema_faults(method, args, shared)
    if shared is not None:
        found += _argument_faults(method, args, shared)
    return [f"{method}: {fault}" for fault in found]


def _message_faults(method: str, args: Mapping[str, Any]) -> Iterator[str]:
    text, blocks = args.get("text"), args.get("blocks") or []
    if not isinstance(text, str) or not text.strip():
        yield "no top-level text"
    elif len(text) > (4_000 if method == "chat.update" else 40_000):
        yield f"text of {len(text)} characters"
    if args.get("link_names") or args.get("parse") == "full":
        yield "link_names or parse=full"
    if not isinstance(blocks, list):
        yield "blocks is no list"
        return
    if len(blocks) > 50:
        yield f"{len(blocks)} blocks"
    total = sum(len(s) for b in blocks for s in texts(b))
    if total > 13_200:
        yield f"msg_blocks_too_long: {total} characters over all blocks"
    markdown = sum(len(b.get("text", "")) for b in blocks if b.get("type") == "markdown")
    if markdown > 12_000:
        yield f"{markdown} characters over all markdown blocks"
    ids = [b["block_id"] for b in blocks if "block_id" in b]
    if len(ids) != len(set(ids)):
        yield "block_id twice"
    for block in blocks:
        yield from _block_faults(block)
    resolved = [text or "", *(s for b in blocks if b.get("type") != "rich_text" for s in texts(b))]
    if any(_BROADCAST.search(s) for s in resolved):
        yield "a broadcast: everybody is pinged"


def _block_faults(block: Mapping[str, Any]) -> Iterator[str]:
    match block.get("type"):
        case "section":
            text = block.get("text") or {}
            if not 1 <= len(text.get("text", "")) <= 3_000:
                yield f"section text of {len(text.get('text', ''))} characters"
            if "accessory" in block:
                yield from _element_faults(block["accessory"])
        case "markdown":
            if not block.get("text"):
                yield "empty markdown block"
        case "context":
            elements = block.get("elements") or []
            if not 1 <= len(elements) <= 10:
                yield f"{len(elements)} elements of a context"
            for element in elements:
                if not 1 <= len(element.get("text", "")) <= 2_000:
                    yield "context text too long or empty"
        case "actions":
            elements = block.get("elements") or []
            if not 1 <= len(elements) <= 25:
                yield f"{len(elements)} elements of actions"
            ids = [element.get("action_id") for element in elements]
            if len(ids) != len(set(ids)):
                yield "action_id twice in a block"
            for element in elements:
                yield from _element_faults(element)
        case "rich_text":
            for part in block.get("elements") or [{}]:
                for leaf in part.get("elements") or [{}]:
                    if leaf.get("type") == "text" and not leaf.get("text"):
                        yield "empty text in rich_text"
        case "header":
            if len((block.get("text") or {}).get("text", "")) > 150:
                yield "header too long"
        case "divider":
            pass
        case other:
            yield f"block type {other}"


def _element_faults(element: Mapping[str, Any]) -> Iterator[str]:
    if element.get("type") != "button":
        yield f"element type {element.get('type')}"
        return
    if not 1 <= len((element.get("text") or {}).get("text", "")) <= 75:
        yield "button text too long or empty"
    if not 1 <= len(element.get("action_id", "")) <= 255:
        yield "button without action_id"
    if len(element.get("value", "")) > 2_000:
        yield "button value too long"
    confirm = element.get("confirm") or {}
    for name, most in (("title", 100), ("text", 300), ("confirm", 30), ("deny", 30)):
        if confirm and not 1 <= len((confirm.get(name) or {}).get("text", "")) <= most:
            yield f"confirm {name} too long or empty"


def texts(node: Any) -> Iterator[str]:
    """Every string that Slack shows of a block."""
    if isinstance(node, Mapping):
        for key, value in node.items():
            if key == "text" and isinstance(value, str):
                yield value
            elif key != "confirm":
                yield from texts(value)
    elif isinstance(node, list):
        for each in node:
            yield from texts(each)


@lru_cache
def _validator(name: str, shared: Path) -> Any:
    schema = json.loads((shared / "schemas" / f"{name}.json").read_text(encoding="utf-8"))
    return jsonschema.Draft7Validator(schema)


def _schema_faults(method: str, args: Mapping[str, Any], shared: Path) -> list[str]:
    given = {key: value for key, value in args.items() if key not in ("token", "team_id")}
    error = jsonschema.exceptions.best_match(_validator(SCHEMAS[method], shared).iter_errors(given))
    return [f"schema: {error.json_path}: {error.message[:300]}"] if error else []


@lru_cache
def _published(method: str, shared: Path) -> frozenset[str] | None:
    path = shared / "methods" / f"{method}.json"
    return frozenset(json.loads(path.read_text(encoding="utf-8"))["args"]) if path.is_file() else None


def _argument_faults(method: str, args: Mapping[str, Any], shared: Path) -> list[str]:
    published = _published(method, shared)
    if published is None:
        return []
    extra = [a for a in args if a not in published and a not in ("token", "team_id", "app_token")]
    return [f"{name} is no published argument" for name in extra]
