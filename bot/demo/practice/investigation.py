"""An investigation: the next commands of a job, then its milestone, then its answer. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from bot.demo.practice import wording
from bot.demo.practice.findings import Finding, answers, cores_of, find, pick
from bot.demo.practice.reading import Lang, Ran, Talk
from bot.demo.practice.topics import Need, Topic, needs_of

Call = tuple[str, dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Said:
    """A reply. Without calls it is the answer."""

    text: str
    calls: tuple[Call, ...] = ()


@dataclass(frozen=True, slots=True)
class Job:
    """An investigation. runs: those that count as looked at already. earlier: what was found before this turn."""

    needs: tuple[Need, ...]
    hosts: tuple[str, ...]
    runs: tuple[Ran, ...]
    earlier: tuple[Finding, ...] = ()
    going_on: bool = False


def investigate(talk: Talk, job: Job) -> Said:
    """What to say or call next in a job."""
    lang = talk.lang
    todo = {} if talk.answer_now else next_commands(job)
    if todo:
        return _look(talk, job, todo)
    found = findings(job.needs, job.hosts, talk.now, lang=lang)
    closing = _closing_calls(talk, job, found)
    if closing:
        return Said("", closing)
    return Said(_answer(talk, job, found))


def next_commands(job: Job) -> dict[str, list[str]]:
    """Command -> hosts: for each need that is not settled on a host, its first alternative not yet tried."""
    done = {(ran.host, ran.command): ran for ran in job.runs}
    todo: dict[str, list[str]] = {}
    for need in job.needs:
        for host in job.hosts:
            for command in need.commands:
                ran = done.get((host, command))
                if ran is None:
                    hosts = todo.setdefault(command, [])
                    hosts += [host] if host not in hosts else []
                if ran is None or answers(need, ran):
                    break
    return todo


def _look(talk: Talk, job: Job, todo: dict[str, list[str]]) -> Said:
    lang = talk.lang
    topics = list(dict.fromkeys(need.topic for need in job.needs))
    calls: list[Call] = []
    first = "run_command" not in talk.called
    where = wording.listed(list(job.hosts), lang)
    what = wording.listed([wording.label(topic, lang) for topic in topics], lang)
    if first and len(topics) > 1 and "plan" in talk.tools:
        calls.append(_plan(topics, lang, done=False))
    calls += [
        ("run_command", {"hosts": hosts, "command": command, "purpose": _purpose(job, command, lang)})
        for command, hosts in todo.items()
    ]
    if first:
        text = pick(lang, f"Looking at {what} on {where}.", f"正在查看 {where} 的{what}。")
    else:
        text = pick(lang, "Not everything answered; trying other ways.", "有的命令没有结果，换别的方法。")
    return Said(text, tuple(calls))


def _purpose(job: Job, command: str, lang: Lang) -> str:
    topics = [wording.label(need.topic, lang) for need in job.needs if command in need.commands]
    return wording.listed(list(dict.fromkeys(topics)), lang)


def _plan(topics: Sequence[Topic], lang: Lang, *, done: bool) -> Call:
    steps = [
        {
            "step": pick(lang, f"look at {wording.label(t, lang)}", f"查看{wording.label(t, lang)}"),
            "state": "done" if done else "doing" if at == 0 else "todo",
        }
        for at, t in enumerate(topics)
    ]
    steps.append({"step": pick(lang, "conclude", "得出结论"), "state": "doing" if done else "todo"})
    return "plan", {
        "steps": steps,
        "next_step": pick(lang, "conclude", "得出结论") if done else steps[0]["step"],
    }


def findings(
    needs: Sequence[Need], hosts: Sequence[str], runs: Sequence[Ran], *, lang: Lang
) -> list[Finding]:
    """What these runs show, host by host; the newest run of a command counts."""
    newest = {(ran.host, ran.command): ran for ran in runs}
    out = []
    for host in hosts:
        for need in needs:
            tried = [newest[host, command] for command in need.commands if (host, command) in newest]
            settled = next((ran for ran in tried if answers(need, ran)), None)
            found = (
                find(need, settled, cores_of(runs, host), lang) if settled else _nothing(need, tried, lang)
            )
            out += [found] if found and found not in out else []
    return out


def _nothing(need: Need, tried: Sequence[Ran], lang: Lang) -> Finding | None:
    """Every way to know was tried in vain: say so, and why."""
    if len(tried) < len(need.commands) or need.key == "load.cores":
        return None
    why = pick(lang, "; ", "；").join(f"`{ran.command}`: {wording.why_not(ran, lang)}" for ran in tried)
    name = f"{need.name} " if need.name else ""
    return Finding(
        need.topic,
        tried[0].host,
        pick(lang, f"{name}unknown, nothing answered ({why})", f"{name}未知，没有命令成功（{why}）"),
    )


def _closing_calls(talk: Talk, job: Job, found: Sequence[Finding]) -> tuple[Call, ...]:
    """The milestone of what was found, once a turn, and the plan ticked off."""
    if talk.answer_now or not found or "milestone" in talk.called or "milestone" not in talk.tools:
        return ()
    told = next((f for f in found if f.alarming), None) or next(
        (f for f in found if f.topic is not Topic.VERSIONS), found[0]
    )
    calls: list[Call] = [
        ("milestone", {"kind": "finding", "text": wording.line(told, talk.lang, host=True)[:500]})
    ]
    if "plan" in talk.called:
        calls.append(_plan(list(dict.fromkeys(need.topic for need in job.needs)), talk.lang, done=True))
    return tuple(calls)


def _answer(talk: Talk, job: Job, found: Sequence[Finding]) -> str:
    lang, hosts = talk.lang, job.hosts
    parts = []
    if job.earlier:
        before = pick(lang, "Found earlier in this thread:", "此前在本会话中查到：")
        parts.append("\n".join((before, *wording.bullets(job.earlier, lang, hosts=len(hosts)))))
    if talk.now:
        parts.append(
            "\n".join((wording.lead(found, hosts, lang), *wording.bullets(found, lang, hosts=len(hosts))))
        )
        parts.append(wording.what_ran(talk.now, lang))
    elif job.going_on:
        parts.append(
            pick(
                lang,
                "Nothing is left that I know how to look at for this, so I ran nothing new.",
                "关于这个问题，我能查看的都已查看过，没有再运行新的命令。",
            )
        )
    parts.append(_what_next(talk, job, found))
    return "\n\n".join(part for part in (*parts, wording.note(lang)) if part)


def _what_next(talk: Talk, job: Job, found: Sequence[Finding]) -> str:
    """What was left out, or what `continue` would look at."""
    lang = talk.lang
    left = list(next_commands(job)) if talk.answer_now else []
    if not left and not job.going_on and found:
        topics = tuple(dict.fromkeys(need.topic for need in job.needs))
        ran = {ran.command for ran in talk.now}
        deeper = [need.commands[0] for need in needs_of(topics, talk.question) if need.deeper]
        left = [command for command in dict.fromkeys(deeper) if command not in ran]
    if not left:
        return ""
    commands = wording.listed([f"`{command}`" for command in left[:4]], lang)
    return pick(
        lang, f'Next I would look at {commands}: say "continue".', f"下一步我会查看 {commands}：请说“继续”。"
    )
