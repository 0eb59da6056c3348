"""Extraction held against labelled messages and results; held_out/ was written before the rules and not tuned to."""

from __future__ import annotations

import pytest

from tests.memory.labelled import FOLDER, Case, cases, judge

LEAST_PRECISION, LEAST_RECALL = 0.95, 0.85
FOLDERS = [name for name in ("cases", "held_out") if (FOLDER / name).is_dir()]


@pytest.fixture(scope="module")
def everything() -> list[Case]:
    return [case for folder in FOLDERS for case in cases(folder)]


def test_each_kind_is_found_rightly_in_both_languages(
    everything: list[Case], capsys: pytest.CaptureFixture[str]
) -> None:
    score = judge(everything)
    with capsys.disabled():
        for folder in FOLDERS:
            print(f"\n{folder}\n{judge(list(cases(folder))).table()}")
    low = [
        key
        for key in score.groups()
        if score.precision(key) < LEAST_PRECISION or score.recall(key) < LEAST_RECALL
    ]
    assert not low, "\n".join([score.table(), *score.said])
