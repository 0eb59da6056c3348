"""Export and import: whole, readable, never doubled, never half."""

from __future__ import annotations

import json
from typing import Any

import pytest

from storage import branches, sessions, transfer
from storage.records import Origin
from storage.store import Store
from tests import make


def _lines(*rows: dict[str, Any]) -> list[str]:
    return [json.dumps({"session": "s1", "text": "", **row}, ensure_ascii=False) for row in rows]


async def _import(store: Store, lines: list[str], *, owner: str = "U1") -> list[transfer.Imported]:
    return await transfer.import_(store, transfer.parse(lines), team="local", owner=owner)


async def _export(store: Store, session_id: int) -> list[dict[str, Any]]:
    async with store.begin() as db:
        return await transfer.export(db, session_id)


TALK = _lines(
    {"seq": 1, "role": "user", "author": "Alice", "text": "磁盘满了?", "created_at": "2026-01-01T10:00:00Z"},
    {
        "seq": 2,
        "role": "assistant",
        "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "run_command", "arguments": '{"x": "é"}'}}
        ],
    },
    {"seq": 3, "role": "tool", "tool_call_id": "c1", "text": "92 %"},
    {"seq": 4, "role": "assistant", "text": "Yes.", "author": "opsthread"},
)


async def test_a_file_comes_back_as_it_went_in(store: Store) -> None:
    (done,) = await _import(store, TALK)
    assert (done.key, done.added, done.skipped) == ("s1", 4, 0)
    back = await _export(store, done.session_id)
    for sent, got in zip(map(json.loads, TALK), back, strict=True):
        assert {**got, **sent, "created_at": got["created_at"]} == got, "what was sent is all there"
    assert back[0]["created_at"] == "2026-01-01T10:00:00+00:00"
    assert [line["parent_id"] for line in back] == [None, 1, 2, 3]
    async with store.begin() as db:
        session = await sessions.get(db, done.session_id)
        history = await sessions.history(db, done.session_id)
    assert (session.origin, session.key, session.owner) == (Origin.IMPORT, "s1", "U1")
    assert session.title == "磁盘满了?"
    assert history[1].tool_calls[0].name == "run_command"
    assert history[1].tool_calls[0].arguments == '{"x": "é"}'


async def test_the_same_file_again_adds_nothing(store: Store) -> None:
    await _import(store, TALK)
    (again,) = await _import(store, TALK)
    assert (again.added, again.skipped, again.different) == (0, 4, ())
    assert len(await _export(store, again.session_id)) == 4


async def test_a_longer_file_adds_what_is_new_and_moves_the_head(store: Store) -> None:
    (first,) = await _import(store, TALK[:2])
    (more,) = await _import(store, TALK)
    assert (more.session_id, more.added, more.skipped) == (first.session_id, 2, 2)
    async with store.begin() as db:
        assert [m.seq for m in await sessions.history(db, more.session_id)] == [1, 2, 3, 4]
        await sessions.append(db, more.session_id, None, [make.user("and now?")])
        assert (await sessions.history(db, more.session_id))[-1].seq == 5


async def test_a_stored_message_is_never_changed_by_an_import(store: Store) -> None:
    await _import(store, TALK)
    (again,) = await _import(store, [*TALK[:3], *_lines({"seq": 4, "role": "assistant", "text": "No."})])
    assert (again.added, again.different) == (0, (4,))
    assert (await _export(store, again.session_id))[3]["text"] == "Yes."


async def test_seq_is_kept_with_its_gaps_and_in_any_order(store: Store) -> None:
    lines = _lines({"seq": 30, "role": "assistant", "text": "b"}, {"seq": 10, "role": "user", "text": "a"})
    (done,) = await _import(store, lines)
    assert [(x["seq"], x["text"], x["parent_id"]) for x in await _export(store, done.session_id)] == [
        (10, "a", None),
        (30, "b", 10),
    ]
    async with store.begin() as db:
        (stored,) = await sessions.append(db, done.session_id, None, [make.user()])
    assert stored.seq == 31


async def test_branches_and_the_current_one_survive_the_trip(store: Store) -> None:
    session = await make.stored_session(store, make.user("q"), make.assistant("a"))
    async with store.begin() as db:
        await branches.rewind(db, session.id, 2)
        await sessions.append(db, session.id, None, [make.assistant("b")])
        await branches.rewind(db, session.id, 1)
        await sessions.append(db, session.id, None, [make.user("another root")])
        await branches.switch(db, session.id, 2)
    lines = await _export(store, session.id)
    (done,) = await _import(store, [json.dumps(line) for line in lines])
    assert await _export(store, done.session_id) == lines
    async with store.begin() as db:
        assert [m.text for m in await sessions.history(db, done.session_id)] == ["q", "a"]


async def test_two_people_may_use_the_same_key(store: Store) -> None:
    (one,) = await _import(store, TALK, owner="U1")
    (two,) = await _import(store, TALK, owner="U2")
    assert one.session_id != two.session_id
    assert (one.added, two.added) == (4, 4)
    async with store.begin() as db:
        assert (await sessions.find(db, "local", Origin.IMPORT, key="s1", owner="U2")) == await sessions.get(
            db, two.session_id
        )


@pytest.mark.parametrize(
    ("row", "what"),
    [
        ({"seq": 1, "role": "system"}, "unknown role 'system' (known: user, assistant, tool)"),
        ({"seq": 1, "role": None}, "role is missing"),
        ({"seq": 0, "role": "user"}, "seq 0 is not a whole number from 1"),
        ({"seq": "1", "role": "user"}, "seq '1' is not a whole number from 1"),
        ({"seq": True, "role": "user"}, "seq True is not"),
        ({"seq": 2**31, "role": "user"}, "is not a whole number"),
        ({"seq": 1, "role": "user", "text": 5}, "text is not a text"),
        ({"seq": 1, "role": "user", "session": " "}, "session is not a name"),
        ({"seq": 1, "role": "user", "created_at": "yesterday"}, "created_at 'yesterday' is not a time"),
        ({"seq": 1, "role": "user", "created_at": 5}, "created_at 5 is not a time"),
        ({"seq": 1, "role": "assistant", "tool_calls": [{"id": "x"}]}, "tool_calls is not a list of calls"),
        ({"seq": 2, "role": "user", "parent_id": 2}, "parent_id 2 is not the seq of an earlier message"),
        ({"seq": 100, "role": "user", "parent_id": 7}, "parent_id 7 is not the seq of an earlier message"),
        ({"seq": 9, "role": "user"}, "session 's1' has seq 9 in line 1 already"),
    ],
)
async def test_one_bad_line_is_named_and_nothing_is_imported(
    store: Store, row: dict[str, Any], what: str
) -> None:
    good = _lines({"seq": 9, "role": "user", "text": "good"})
    with pytest.raises(transfer.ImportFault) as caught:
        await _import(store, [*good, "", *_lines(row)])
    assert str(caught.value).startswith("line 3: ")
    assert what in str(caught.value)
    async with store.begin() as db:
        assert await sessions.list_(db) == []


@pytest.mark.parametrize(
    ("raw", "what"),
    [("{", "not JSON"), ("[" * 100_000, "not JSON"), ("[]", "not a JSON object"), ("{}", "session is")],
)
def test_what_is_no_line_at_all_is_named(raw: str, what: str) -> None:
    with pytest.raises(transfer.ImportFault, match=what):
        transfer.parse([raw])


def test_text_may_be_null_but_not_absent() -> None:
    line = '{"session": "s", "seq": 1, "role": "assistant", "text": null}'
    assert transfer.parse([line])[0].text == ""
    with pytest.raises(transfer.ImportFault, match="text is missing"):
        transfer.parse(['{"session": "s", "seq": 1, "role": "user"}'])


async def test_text_postgres_cannot_hold_is_mended_on_the_way_in(store: Store) -> None:
    call = {"id": "c", "name": "x", "arguments": "\x00"}
    rows = _lines({"seq": 1, "role": "assistant", "text": "a\x00b", "author": "\ud800", "tool_calls": [call]})
    (done,) = await _import(store, [json.dumps(json.loads(rows[0]))])
    (back,) = await _export(store, done.session_id)
    assert (back["text"], back["author"]) == ("a\ufffdb", "\ufffd")
    assert back["tool_calls"][0]["arguments"] == "\ufffd"


async def test_a_file_of_many_messages_is_one_transaction_a_session(store: Store) -> None:
    rows = [{"seq": n, "role": "user", "text": f"m{n}", "session": f"s{n % 2}"} for n in range(1, 2001)]
    done = await _import(store, _lines(*rows))
    assert [(d.key, d.added) for d in done] == [("s1", 1000), ("s0", 1000)]
