"""Results of hosts that a person may not use are withheld, also where the call stands before what was read."""

from __future__ import annotations

import json

from bot.agent.withhold import withheld
from storage.records import Message, Role, ToolCall


def asked(host: str, call_id: str) -> Message:
    arguments = json.dumps({"hosts": [host], "command": "df"})
    return Message(role=Role.ASSISTANT, text="", tool_calls=(ToolCall(call_id, "run_command", arguments),))


def result(text: str, call_id: str, role: Role = Role.TOOL) -> Message:
    return Message(
        role=role, text=text, tool_call_id=call_id, author="opsthread" if role is Role.USER else ""
    )


def shown(*messages: Message) -> list[str]:
    return [m.text for m in withheld(messages, denied={"db-1"}, who="bob")]


def test_a_note_whose_call_is_older_than_what_was_read_is_withheld() -> None:
    assert "the balance is 5" not in " ".join(shown(result("the balance is 5", "c1", Role.USER)))
    assert "the balance is 5" not in " ".join(shown(result("the balance is 5", "c1")))


def test_two_calls_with_one_id_count_as_both() -> None:
    texts = shown(
        asked("db-1", "c1"), result("the balance is 5", "c1"), asked("web-1", "c1"), result("ok", "c1")
    )
    assert "the balance is 5" not in " ".join(texts)


def test_what_other_hosts_and_tools_said_stays() -> None:
    plan = Message(role=Role.ASSISTANT, text="", tool_calls=(ToolCall("c2", "plan", "{}"),))
    assert shown(asked("web-1", "c1"), result("ok", "c1"), plan, result("noted", "c2"))[1::2] == [
        "ok",
        "noted",
    ]
