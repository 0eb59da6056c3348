"""Many people in one thread and in their own, with a model that says everything it is told: nobody's memory reaches another."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path

from storage import sessions, transfer
from storage.memories import ending, keeping
from storage.records import LOCAL_TEAM, MemoryKind, NewMemory
from tests.fakes.model import Answer, Request, call, calls, say
from tests.turns.rig import HOST, Rig, open_rig

PEOPLE = ("alice", "bob", "carol", "达雅")
WORDS = ("nginx", "redis", "pool", "disk", "timeout", "磁盘", "重启", "deploy")
MARK = re.compile(r"of-(\w+?)-(open-)?\d+")


async def test_nobody_is_told_what_only_another_knows(database_url: str, tmp_path: Path) -> None:
    chance = random.Random(20261201)
    async with open_rig(database_url, tmp_path) as rig:
        rig.model.answer_by(_echo)
        for person in PEOPLE:
            await _fill(rig, person, chance)
        said: list[tuple[str, str]] = []  # who asked, the whole request
        thread = None
        for turn in range(16):
            person = PEOPLE[turn % len(PEOPLE)]
            talk = rig.conversation(session=thread if turn % 3 else None)
            talk.owner = person
            before = len(rig.model.requests)
            await talk.say(" ".join(chance.sample(WORDS, 4)))
            thread = thread or talk.session
            said += [(person, json.dumps(each, ensure_ascii=False)) for each in rig.model.requests[before:]]
        told = {person for person, request in said for mark in MARK.findall(request) if mark[0] == person}
        assert told == set(PEOPLE), "each is given their own"
        strange = {
            (person, mark)
            for person, request in said
            for mark in MARK.findall(request)
            if mark[0] != person and not mark[1]
        }
        assert strange == set()
        assert any(mark[1] and mark[0] != person for person, r in said for mark in MARK.findall(r))
        async with rig.store.begin() as db:
            for session in await sessions.list_(db, team=LOCAL_TEAM, limit=100):
                lines = await transfer.export(db, session.id)
                dumped = json.dumps(lines, ensure_ascii=False)
                leaks = [
                    dumped[max(0, m.start() - 300) : m.end() + 80] for m in MARK.finditer(dumped) if not m[2]
                ]
                assert leaks == []
        assert rig.model.violations == []


async def _fill(rig: Rig, person: str, chance: random.Random) -> None:
    async with rig.store.begin() as db:
        for number in range(12):
            kind = list(MemoryKind)[number % 4]
            shared = number in (1, 2)
            mark = f"of-{person}-{'open-' if shared else ''}{number}"
            filler = "long " * (200 if number == 3 else 0)  # shown in part only
            text = f"The {' '.join(chance.sample(WORDS, 5))} case {mark} {filler}."
            new = NewMemory(kind, text, value=mark, host=HOST if number % 2 else None)
            kept = await keeping.add(db, new, team=LOCAL_TEAM, owner=person)
            assert kept is not None
            if shared:
                await ending.share(db, kept.id, team=LOCAL_TEAM, owner=person, wording=text)


def _echo(request: Request) -> Answer:
    """All that stands before the newest words, as a plan, a milestone and an answer."""
    told = str([m["content"] for m in request["messages"] if m["role"] == "user"][-1])
    if request["messages"][-1]["role"] == "tool":
        return say(f"I know:\n{told}")
    steps = [{"step": line, "state": "todo"} for line in told.splitlines() if line.strip()][:20]
    wanted = [
        call("plan", steps=steps, next_step=told),
        call("milestone", kind="finding", text=told),
        call("run_command", hosts=[HOST], command=f"echo '{told}'", purpose=told[:500]),
    ]
    return calls(wanted, text=told)
