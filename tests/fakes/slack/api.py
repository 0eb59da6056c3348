"""The Web API methods of the fake: each takes a workspace and checked arguments, and answers as Slack does."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tests.fakes.slack.workspace import Channel, Message, Workspace

Args = Mapping[str, Any]


class Refusal(Exception):
    """`ok: false` with this error."""


def auth_test(w: Workspace, _: Args) -> dict[str, Any]:
    return {
        "url": "https://acme.slack.example/",
        "team": "acme",
        "user": "ops",
        "team_id": w.team,
        "user_id": w.bot_user,
        "bot_id": w.bot_id,
        "is_enterprise_install": False,
    }


def _channel(w: Workspace, args: Args, *, writing: bool = False) -> Channel:
    channel = w.channels.get(str(args["channel"]))
    if channel is None:
        raise Refusal("channel_not_found")
    if w.bot_user not in channel.members:
        raise Refusal("not_in_channel")
    if writing and channel.archived:
        raise Refusal("is_archived")
    return channel


def post_message(w: Workspace, args: Args) -> dict[str, Any]:
    channel = _channel(w, args, writing=True)
    thread_ts = args.get("thread_ts")
    if thread_ts and channel.message(thread_ts) is None:
        raise Refusal("thread_not_found")
    more = {key: args[key] for key in ("blocks", "metadata") if args.get(key)}
    message = w.write(
        channel.id,
        user=w.bot_user,
        text=args["text"],
        thread_ts=thread_ts,
        bot_id=w.bot_id,
        app_id=w.app_id,
        **more,
    )
    return {"channel": channel.id, "ts": message["ts"], "message": _without_metadata(message)}


def update(w: Workspace, args: Args) -> dict[str, Any]:
    channel = _channel(w, args, writing=True)
    message = channel.message(args["ts"])
    if message is None:
        raise Refusal("message_not_found")
    if message["user"] != w.bot_user:
        raise Refusal("cant_update_message")
    message["text"] = args["text"]
    if args.get("blocks"):
        message["blocks"] = args["blocks"]
    else:
        message.pop("blocks", None)
    message["edited"] = {"user": w.bot_user, "ts": w.ts()}
    message.setdefault("edits", []).append(args["text"])
    return {"channel": channel.id, "ts": message["ts"], "text": args["text"]}


def post_ephemeral(w: Workspace, args: Args) -> dict[str, Any]:
    channel = _channel(w, args, writing=True)
    if args["user"] not in channel.members:
        raise Refusal("user_not_in_channel")
    return {"message_ts": w.ts()}


def reactions_add(w: Workspace, args: Args) -> dict[str, Any]:
    message = _channel(w, args).message(args["timestamp"])
    if message is None:
        raise Refusal("message_not_found")
    names = message.setdefault("reactions", [])
    if args["name"] in names:
        raise Refusal("already_reacted")
    names.append(args["name"])
    return {}


def users_info(w: Workspace, args: Args) -> dict[str, Any]:
    user = w.users.get(args["user"])
    if user is None:
        raise Refusal("user_not_found")
    return {"user": user}


def conversations_info(w: Workspace, args: Args) -> dict[str, Any]:
    channel = w.channels.get(args["channel"])
    if channel is None:
        raise Refusal("channel_not_found")
    return {"channel": channel.as_json()}


def conversations_members(w: Workspace, args: Args) -> dict[str, Any]:
    return _page(_channel(w, args).members, args, "members")


def users_conversations(w: Workspace, args: Args) -> dict[str, Any]:
    kinds = {"public_channel": "channel", "private_channel": "group", "im": "im", "mpim": "mpim"}
    wanted = {kinds[name] for name in str(args.get("types") or "public_channel").split(",")}
    mine = [c.as_json() for c in w.channels.values() if w.bot_user in c.members and c.kind in wanted]
    return _page(mine, args, "channels")


def usergroups_users_list(w: Workspace, args: Args) -> dict[str, Any]:
    if args["usergroup"] not in w.usergroups:
        raise Refusal("no_such_subteam")
    return {"users": w.usergroups[args["usergroup"]]}


def conversations_history(w: Workspace, args: Args) -> dict[str, Any]:
    top = [m for m in _channel(w, args).messages if m.get("thread_ts") in (None, m["ts"]) or m.get("subtype")]
    return _page([_shown(m, args) for m in reversed(top) if _within(m, args)], args, "messages")


def conversations_replies(w: Workspace, args: Args) -> dict[str, Any]:
    thread = _channel(w, args).thread(args["ts"])
    if not thread:
        raise Refusal("thread_not_found")
    root = [m for m in thread if m["ts"] == args["ts"]]  # Slack gives the root whatever `oldest` says
    rest = [m for m in thread if m["ts"] != args["ts"] and _within(m, args)]
    return _page([_shown(m, args) for m in [*root, *rest]], args, "messages")


def conversations_open(w: Workspace, args: Args) -> dict[str, Any]:
    return {"channel": {"id": w.dm(str(args["users"])).id}}


def permalink(w: Workspace, args: Args) -> dict[str, Any]:
    ts = str(args["message_ts"]).replace(".", "")
    return {"permalink": f"https://acme.slack.example/archives/{args['channel']}/p{ts}"}


def _within(message: Message, args: Args) -> bool:
    ts = float(message["ts"])
    inclusive = args.get("inclusive") in (True, "true", "1")
    oldest, latest = float(args.get("oldest") or 0), float(args.get("latest") or "inf")
    return oldest < ts < latest or (inclusive and ts in (oldest, latest))


def _shown(message: Message, args: Args) -> Message:
    wanted = str(args.get("include_all_metadata", "")).lower() in ("true", "1")
    return dict(message) if wanted else _without_metadata(message)


def _without_metadata(message: Message) -> Message:
    return {key: value for key, value in message.items() if key not in ("metadata", "edits")}


def _page(items: list[Any], args: Args, name: str) -> dict[str, Any]:
    start, limit = int(args.get("cursor") or 0), int(args.get("limit") or 100)
    more = start + limit < len(items)
    return {
        name: items[start : start + limit],
        "has_more": more,
        "response_metadata": {"next_cursor": str(start + limit) if more else ""},
    }


ANSWERS: Mapping[str, Callable[[Workspace, Args], dict[str, Any]]] = {
    "auth.test": auth_test,
    "chat.getPermalink": permalink,
    "chat.postEphemeral": post_ephemeral,
    "chat.postMessage": post_message,
    "chat.update": update,
    "conversations.history": conversations_history,
    "conversations.info": conversations_info,
    "conversations.members": conversations_members,
    "conversations.open": conversations_open,
    "conversations.replies": conversations_replies,
    "reactions.add": reactions_add,
    "usergroups.users.list": usergroups_users_list,
    "users.conversations": users_conversations,
    "users.info": users_info,
}
