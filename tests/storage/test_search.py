"""Search over past messages: any word, rare ones first, Chinese too, and only what the caller may see."""

from __future__ import annotations

from storage import search, sessions
from storage.records import Origin
from storage.store import Store
from tests import make


async def _fill(store: Store) -> None:
    await make.stored_session(
        store,
        make.user("the disk of db-1 is full"),
        make.assistant("WAL files fill the disk"),
        make.user("磁盘满了，怎么办？"),
        key="1",
        owner="U1",
        channel="C1",
    )
    await make.stored_session(
        store, make.user("nginx answers 502 and the disk is slow"), key="2", owner="U2", channel="C2"
    )


async def _texts(store: Store, query: str, **more: object) -> list[str]:
    async with store.begin() as db:
        hits = await search.search(db, query, **more)  # type: ignore[arg-type]
        every = {m.id: m.text for s in await sessions.list_(db) for m in await sessions.messages(db, s.id)}
    return [every[hit.message_id] for hit in hits]


async def test_one_matching_word_is_enough_and_rare_words_count_most(store: Store) -> None:
    await _fill(store)
    assert await _texts(store, "why does nginx give 502 on the DISK of mars") == [
        "nginx answers 502 and the disk is slow",
        "WAL files fill the disk",
        "the disk of db-1 is full",
    ]
    assert await _texts(store, "kubernetes") == []


async def test_chinese_is_found_without_spaces(store: Store) -> None:
    await _fill(store)
    assert await _texts(store, "磁盘满") == ["磁盘满了，怎么办？"]


async def test_full_width_and_upper_case_are_the_same_word(store: Store) -> None:
    await _fill(store)
    assert await _texts(store, "ＮＧＩＮＸ") == ["nginx answers 502 and the disk is slow"]


async def test_signs_of_patterns_are_plain_text(store: Store) -> None:
    await make.stored_session(store, make.user("50% of a_b"), make.user("500 of axb"))
    assert await _texts(store, "a_b") == ["50% of a_b"]


async def test_by_session_each_session_is_there_once_with_its_best_message(store: Store) -> None:
    await _fill(store)
    async with store.begin() as db:
        hits = await search.search(db, "disk full", by="session")
        assert [hit.seq for hit in hits] == [1, 1]
        assert len({hit.session_id for hit in hits}) == 2
        assert len(await search.search(db, "disk full", by="session", limit=1)) == 1


async def test_only_what_the_caller_may_see_is_searched(store: Store) -> None:
    await _fill(store)
    assert await _texts(store, "disk", owner="U2") == ["nginx answers 502 and the disk is slow"]
    assert await _texts(store, "disk", channels=["C1"]) == [
        "WAL files fill the disk",
        "the disk of db-1 is full",
    ]
    assert await _texts(store, "disk", channels=[]) == []
    assert await _texts(store, "disk", team="T9") == []


async def test_a_hit_names_the_key_of_an_import_and_of_nothing_else(store: Store) -> None:
    await _fill(store)
    await make.stored_session(store, make.user("disk"), key="conv-7", origin=Origin.IMPORT, owner="U3")
    async with store.begin() as db:
        hits = await search.search(db, "disk", owner="U3")
        others = await search.search(db, "disk", owner="U1")
    assert [hit.session_key for hit in hits] == ["conv-7"]
    assert {hit.session_key for hit in others} == {None}
