"""Extraction held against labelled messages and results; held_out/ and unseen/ were written before the rules that they judge."""

from __future__ import annotations

import pytest

from tests.memory.labelled import cases, judge

LEAST_PRECISION, LEAST_RECALL = 0.95, 0.85
FOLDERS = ("cases", "held_out", "unseen")


@pytest.mark.parametrize("folder", FOLDERS)
def test_each_kind_is_found_rightly_in_both_languages(
    folder: str, capsys: pytest.CaptureFixture[str]
) -> None:
    score = judge(list(cases(folder)))
    with capsys.disabled():
        print(f"\n{folder}\n{score.table()}")
    low = [
        key
        for key in score.groups()
        if score.precision(key) < LEAST_PRECISION or score.recall(key) < LEAST_RECALL
    ]
    assert len(score.groups()) == 8
    assert not low, "\n".join([score.table(), *score.said])
