"""Plays with the practice model, served over HTTP; every request of every play must have been sound."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from bot.demo.practice import PracticeModel
from bot.model import OpenAIModel
from tests.model.play import Play, Shell, Start
from tests.model.shells import hosts_that


@pytest.fixture
async def play() -> AsyncIterator[Start]:
    practice = PracticeModel()
    model = OpenAIModel(base_url=await practice.start(), api_key="", name="practice", budget_s=2)
    plays: list[Play] = []

    def start(shell: Shell | None = None, hosts: tuple[str, ...] = ("demo",), *, listed: bool = True) -> Play:
        plays.append(Play(model, shell or hosts_that(), hosts, listed))
        return plays[-1]

    yield start
    await model.aclose()
    await practice.stop()
    assert [fault for each in plays for fault in each.violations] == []
