"""An embedding model from a folder, for recall: static vectors, no service, no network. Needs the extra `embeddings`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bot.errors import SettingsError
from storage.recall.meaning import Meaning

READ = 2_000  # characters of a text that are embedded


def load_meaning(folder: Path | None) -> Meaning | None:
    """The model in OPSTHREAD_EMBEDDINGS, in model2vec's format; None: recall goes by keywords alone.

    Raises SettingsError.
    """
    if folder is None:
        return None
    try:
        from model2vec import StaticModel
    except ImportError:
        raise SettingsError(
            "OPSTHREAD_EMBEDDINGS is set, but model2vec is not installed; `pip install opsthread[embeddings]`"
            " does that, and without the setting recall goes by keywords"
        ) from None
    if not (folder / "model.safetensors").is_file():
        raise SettingsError(
            f"OPSTHREAD_EMBEDDINGS: {folder} holds no model.safetensors; it must be a folder with a model2vec"
            " model, which nothing here downloads"
        )
    try:
        model: Any = StaticModel.from_pretrained(folder)
    except Exception as error:  # noqa: BLE001 - whatever the library says of a broken file
        raise SettingsError(f"OPSTHREAD_EMBEDDINGS: {folder} cannot be read: {error}") from None

    def near(query: str, texts: Sequence[str]) -> list[float]:
        asked, *vectors = model.encode([query[:READ], *(text[:READ] for text in texts)]).tolist()
        return [_cosine(asked, vector) for vector in vectors]

    return near


def _cosine(one: Sequence[float], other: Sequence[float]) -> float:
    lengths = math.sqrt(sum(x * x for x in one)) * math.sqrt(sum(x * x for x in other))
    return sum(x * y for x, y in zip(one, other, strict=True)) / lengths if lengths else 0.0
