"""Each single check of the gate is missed by at least one case when it is gone."""

from __future__ import annotations

from collections import defaultdict

import pytest

from tests.policy.cases import Case, all_cases
from tests.policy.mutants import Mutant, all_mutants

# Checks whose absence no verdict can show, each with the reason that it is there.
EQUIVALENT = {
    "showing.unshowable: if text.isascii() and text.isprintable()": "a short cut: such a text passes every check below it",
}
PARTS = 4
# What the code does when the check in front of it is gone.
CRASHES = (AttributeError, IndexError, KeyError, TypeError, ValueError)


@pytest.fixture(scope="module")
def every() -> tuple[list[Case], dict[str, list[Case]]]:
    """All cases, and those that name a program."""
    found, by_name = all_cases(), defaultdict[str, list[Case]](list)
    for case in found:
        for name in {word.rpartition("/")[2].strip("'\"") for word in case.command.split()}:
            by_name[name].append(case)
    return found, by_name


@pytest.mark.mutants
@pytest.mark.parametrize("part", range(PARTS))
def test_a_check_that_is_gone_is_missed(every: tuple[list[Case], dict[str, list[Case]]], part: int) -> None:
    cases, by_name = every
    survivors, last = [], cases[0]
    for number, mutant in enumerate(all_mutants()):
        if number % PARTS != part or mutant.name in EQUIVALENT:
            continue
        killer = _killer(mutant, cases, by_name, last)
        if killer is None:
            survivors.append(mutant.name)
        else:
            last = killer
    assert not survivors, "no case misses:\n" + "\n".join(survivors)


def _killer(mutant: Mutant, cases: list[Case], by_name: dict[str, list[Case]], last: Case) -> Case | None:
    """The first case that sees the difference; the one that saw the last is asked first."""
    named = sorted(mutant.programs or ())
    pool = [case for name in named for case in by_name[name]] if named else [last, *cases]
    with mutant.apply() as rules:
        for case in pool:
            try:
                if case.fault(rules):
                    return case
            except CRASHES:
                return case
    return None
