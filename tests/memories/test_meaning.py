"""An embedding beside keywords: it reorders what they found, and is asked for in clear words when it is not there."""

from __future__ import annotations

import importlib.util
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from bot.errors import SettingsError
from bot.meaning import load_meaning
from storage.memories import finding, keeping
from storage.recall.meaning import mixed
from storage.records import Memory, MemoryKind, NewMemory, Recalled
from storage.store import Store

HERE = importlib.util.find_spec("model2vec") is not None
needs_model = pytest.mark.skipif(
    not HERE and not os.environ.get("TEST_FULL"), reason="model2vec is not installed (extra `embeddings`)"
)
VOCABULARY = ["[UNK]", "pool", "exhausted", "full", "connections", "cake", "birthday", "is", "the"]
VECTORS = [[0.0, 0.0], [1, 0], [0.9, 0.1], [0.9, 0.1], [1, 0], [0, 1], [0, 1], [0.01, 0.01], [0.01, 0.01]]


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A model of nine words: what is about connections lies along one axis, what is about cake along the other."""
    import numpy
    from model2vec import StaticModel
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.pre_tokenizers import Whitespace

    words = Tokenizer(WordLevel({word: n for n, word in enumerate(VOCABULARY)}, unk_token="[UNK]"))
    words.pre_tokenizer = Whitespace()
    made: Any = StaticModel(numpy.array(VECTORS, dtype=numpy.float32), words)
    made.save_pretrained(str(tmp_path / "model"))
    return tmp_path / "model"


@needs_model
async def test_meaning_orders_what_keywords_find(store: Store, model: Path) -> None:
    meaning = load_meaning(model)
    assert meaning is not None
    async with store.begin() as db:
        for said in ("the pool cake birthday birthday", "the pool connections full", "the birthday cake"):
            new = NewMemory(MemoryKind.SOFTWARE_FACT, said)
            await keeping.add(db, new, team="T", owner="a")
        asked: dict[str, Any] = {"team": "T", "owner": "a"}
        plain = await finding.recall(db, "pool exhausted", **asked)
        found = await finding.recall(db, "pool exhausted", **asked, meaning=meaning)
    assert {one.memory.id for one in found} == {one.memory.id for one in plain}, "nothing new comes in"
    assert found[0].memory.text == "the pool connections full"


@needs_model
def test_a_folder_that_is_no_model_is_named(tmp_path: Path, model: Path) -> None:
    with pytest.raises(SettingsError, match=r"holds no model\.safetensors"):
        load_meaning(tmp_path / "nothing")
    (model / "model.safetensors").write_bytes(b"broken")
    with pytest.raises(SettingsError, match="cannot be read"):
        load_meaning(model)


def test_without_the_setting_there_is_none() -> None:
    assert load_meaning(None) is None


@pytest.mark.skipif(HERE, reason="model2vec is installed, so nothing is missing")
def test_without_the_package_the_setting_says_how_to_get_it(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"pip install opsthread\[embeddings\]"):
        load_meaning(tmp_path)


def test_equal_keywords_leave_the_order_to_meaning_and_equal_meaning_to_keywords() -> None:
    def found(*scores: float) -> list[Recalled]:
        return [Recalled(_memory(n), score) for n, score in enumerate(scores)]

    def ids(order: list[Recalled]) -> list[int]:
        return [one.memory.id for one in order]

    assert ids(mixed(found(1, 1, 1), "q", lambda _q, _t: [0.1, 0.9, 0.5])) == [1, 2, 0]
    assert ids(mixed(found(3, 2, 1), "q", lambda _q, _t: [0.5, 0.5, 0.5])) == [0, 1, 2]
    assert ids(mixed(found(3, 2.9, 1), "q", lambda _q, _t: [0.1, 0.9, 0.1])) == [1, 0, 2]
    assert mixed([], "q", lambda _q, _t: []) == []


def _memory(number: int) -> Memory:
    now = datetime.now(UTC)
    return Memory(
        id=number, team="T", owner="a", shared=False, kind=MemoryKind.SOFTWARE_FACT, text=str(number), subject=None,
        attribute=None, value=None, host=None, message_id=None, command_id=None, source=None, ref=None, created_at=now,
        valid_from=now, valid_to=None, superseded_by=None, confirmed_at=now, last_used_at=None, use_count=0, words=1,
        scope_id=None,
    )  # fmt: skip
