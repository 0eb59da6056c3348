"""How often recall finds what it should, on public question sets, by the commands' own functions.

LoCoMo: the turn in which the answer stands, and its session, among the ten best. XQuAD, English and Chinese: the
sentence in which the answer stands. OpsEval: the explanation of a question. Then how often something enters a
prompt for questions about other things. The data is read from the folder that SHARED names and is not ours.
"""

from __future__ import annotations

import json
import os
import re
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.figures import table
from bot.meaning import load_meaning
from bot.settings import Settings
from storage import search, transfer
from storage.embedded import EmbeddedPostgres
from storage.memories import finding
from storage.memories import transfer as memory_files
from storage.migrate import upgrade
from storage.recall import messages
from storage.store import Store

DATA = Path(os.environ.get("SHARED", "../shared")) / "bench"
SETTINGS = {"fsync": "off", "synchronous_commit": "off"}
TEAM = "local"
Pairs = list[tuple[str, str]]  # question, ref of what answers it


async def main() -> dict[str, float]:
    """Returns the shares found and the share of unrelated questions that brought something."""
    if not DATA.is_dir():
        print(f"\nRecall: skipped, {DATA} is not there (set SHARED to the folder that holds bench/)")
        return {}
    found: dict[str, float] = {}
    with tempfile.TemporaryDirectory(prefix="opsthread-bench-", ignore_cleanup_errors=True) as name:
        async with EmbeddedPostgres(Path(name) / "pg", settings=SETTINGS) as postgres:
            await upgrade(postgres.url)
            store = Store(postgres.url)
            strange = await _locomo(store, found)
            asked = {}
            for owner, (texts, pairs) in {
                "XQuAD-en": _xquad("en"),
                "XQuAD-zh": _xquad("zh"),
                "OpsEval Wired": _opseval(),
            }.items():
                asked[owner] = [question for question, _ in pairs]
                found[f"{owner} hit@10"] = await _memories(store, owner, texts, pairs)
            found["unrelated injected"] = await _unrelated(store, strange, asked)
            await store.close()
    table("Recall at ten", [("set", "found"), *((name, f"{share:.4f}") for name, share in found.items())])
    return found


def _read(name: str) -> Any:
    return json.loads((DATA / name).read_text(encoding="utf-8"))


async def _locomo(store: Store, found: dict[str, float]) -> list[str]:
    turns: list[float] = []
    wholes: list[float] = []
    questions: list[str] = []
    began = time.perf_counter()
    for number, sample in enumerate(_read("locomo10_corrected.json")):
        owner, talk, places = f"u{number}", sample["conversation"], {}
        lines = []
        for key in [k for k, v in talk.items() if k.startswith("session_") and isinstance(v, list)]:
            for seq, turn in enumerate(talk[key], 1):
                places[turn["dia_id"]] = (key, seq)
                line = {
                    "session": key,
                    "seq": seq,
                    "role": "user",
                    "author": turn["speaker"],
                    "text": turn["text"],
                }
                lines.append(json.dumps(line))
        await transfer.import_(store, transfer.parse(lines), team=TEAM, owner=owner)
        await messages.catch_up(store)
        for question in sample["qa"]:
            ids = re.findall(r"D\d+:\d+", " ".join(question.get("evidence", [])))
            evidence = {places[id_] for id_ in ids if id_ in places}
            if question["category"] == 5 or not evidence:
                continue
            questions.append(question["question"])
            async with store.begin() as db:
                hits = await search.search(db, question["question"], owner=owner)
                best = await search.search(db, question["question"], owner=owner, by="session")
            got = {(hit.session_key, hit.seq) for hit in hits}
            turns.append(len(evidence & got) / len(evidence))
            sessions = {key for key, _ in evidence}
            wholes.append(len(sessions & {hit.session_key for hit in best}) / len(sessions))
    spent = (time.perf_counter() - began) * 1000 / (2 * len(questions))
    print(f"\nLoCoMo: {len(questions):,} questions, {spent:.0f} ms a search with import and indexing in it")
    found["LoCoMo turn R@10"] = sum(turns) / len(turns)
    found["LoCoMo session R@10"] = sum(wholes) / len(wholes)
    return questions


def _xquad(language: str) -> tuple[list[str], Pairs]:
    """Sentences, and questions with the sentence in which the answer begins."""
    texts: list[str] = []
    pairs: Pairs = []
    for article in _read(f"xquad.{language}.json")["data"]:
        for paragraph in article["paragraphs"]:
            whole = paragraph["context"]
            ends = [match.end() for match in re.finditer(r"[。！？]|[.!?]\s", whole)]
            spans = [(a, b) for a, b in zip([0, *ends], [*ends, len(whole)], strict=True) if a < b]
            for qa in paragraph["qas"]:
                at = qa["answers"][0]["answer_start"]
                place = next(n for n, (a, b) in enumerate(spans) if a <= at < b)
                pairs.append((qa["question"], str(len(texts) + place)))
            texts += [whole[a:b] for a, b in spans]
    return texts, pairs


def _opseval() -> tuple[list[str], Pairs]:
    lines = [line for line in _read("opseval_Wired_Network.json") if line.get("solution")]
    return [line["solution"] for line in lines], [(line["question"], str(n)) for n, line in enumerate(lines)]


async def _memories(store: Store, owner: str, texts: Sequence[str], pairs: Pairs) -> float:
    lines = [
        json.dumps({"kind": "TROUBLESHOOTING_CASE", "text": text, "ref": str(n)})
        for n, text in enumerate(texts)
    ]
    async with store.begin(limit_s=memory_files.IMPORT_S) as db:
        await memory_files.import_(db, memory_files.parse(lines), team=TEAM, owner=owner)
    meaning = load_meaning(Settings().embeddings)
    hits = 0
    for question, ref in pairs:
        async with store.begin() as db:
            recalled = await finding.recall(db, question, team=TEAM, owner=owner, meaning=meaning)
        hits += any(one.memory.ref == ref for one in recalled)
    return hits / len(pairs)


async def _unrelated(store: Store, strange: Sequence[str], asked: dict[str, list[str]]) -> float:
    """Each set of memories asked what it has nothing to say to: people's lives, and the other set."""
    rows: list[tuple[str, ...]] = [("memories", "asked", "questions", "something entered")]
    worst = 0.0
    for owner, others in (
        ("OpsEval Wired", {"LoCoMo": strange[:600], "XQuAD-en": asked["XQuAD-en"][:600]}),
        ("XQuAD-en", {"LoCoMo": strange[:600]}),
        ("XQuAD-zh", {"OpsEval Wired": asked["OpsEval Wired"][:600]}),
        ("OpsEval Wired", {"its own": asked["OpsEval Wired"][:600]}),
        ("XQuAD-en", {"its own": asked["XQuAD-en"][:600]}),
        ("XQuAD-zh", {"its own": asked["XQuAD-zh"][:600]}),
    ):
        for name, questions in others.items():
            entered = 0
            for question in questions:
                async with store.begin() as db:
                    entered += bool(await finding.for_prompt(db, question, team=TEAM, owner=owner, hosts=[]))
            share = entered / len(questions)
            worst = worst if name == "its own" else max(worst, share)
            rows.append((owner, name, str(len(questions)), f"{share:.1%}"))
    table("What passes the floor", rows)
    return worst
