"""Errands: a command a person wrote out, or a change of a service they asked for. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from bot.demo.practice import wording
from bot.demo.practice.findings import pick
from bot.demo.practice.intents import Change
from bot.demo.practice.investigation import Job, Said, findings, next_commands
from bot.demo.practice.reading import Ran, Talk
from bot.demo.practice.topics import service


def done_before(talk: Talk, command: str) -> Said | None:
    """On "continue": what became of the command earlier; None when it never ran and may be tried again.

    What was sent, or denied by a person, is not repeated unasked.
    """
    lang = talk.lang
    runs = [ran for ran in talk.before if ran.command == command]
    final = [ran for ran in runs if ran.exit is not None or not ran.problem.startswith("not run")]
    if not final or any(ran.command == command for ran in talk.now):
        return None
    each = [
        f"- {ran.host}: `{command}`: {ran.problem if ran.exit is None else f'exit {ran.exit}'}"
        for ran in final
    ]
    end = pick(
        lang,
        "I do not do it again by myself; ask for it if you want it once more.",
        "我不会自行再做一次；如果需要，请再次提出。",
    )
    before = pick(lang, "Earlier in this thread:", "此前在本会话中：")
    return Said("\n\n".join(("\n".join((before, *each)), end, wording.note(lang))))


def literal(talk: Talk, command: str, hosts: tuple[str, ...]) -> Said:
    """Run exactly what was written out, show what came."""
    lang = talk.lang
    runs = [ran for ran in talk.now if ran.command == command]
    if not runs and not talk.answer_now:
        purpose = pick(lang, "as asked", "按要求运行")
        call = ("run_command", {"hosts": list(hosts), "command": command, "purpose": purpose})
        return Said(pick(lang, "Running it as written.", "按原样运行。"), (call,))
    parts = []
    for ran in runs:
        if ran.exit is None:
            parts.append(
                pick(
                    lang, f"{ran.host}: `{command}`: {ran.problem}", f"{ran.host}：`{command}`：{ran.problem}"
                )
            )
        else:
            head = pick(
                lang,
                f"{ran.host}: `{command}` ended with exit {ran.exit}:",
                f"{ran.host}：`{command}` 的退出码是 {ran.exit}：",
            )
            parts.append(f"{head}\n{wording.quoted(ran, lang)}")
    if not runs:
        parts.append(pick(lang, f"I did not run `{command}`.", f"没有运行 `{command}`。"))
    return Said("\n\n".join((*parts, wording.note(lang))))


def change_service(talk: Talk, change: Change, hosts: tuple[str, ...]) -> Said:
    """Ask for the change, then see how the service is."""
    lang = talk.lang
    runs = [ran for ran in talk.now if ran.command == change.command]
    if not runs and not talk.answer_now:
        purpose = pick(
            lang, f"{change.verb} {change.unit}, as asked", f"按要求执行 {change.verb} {change.unit}"
        )
        call = ("run_command", {"hosts": list(hosts), "command": change.command, "purpose": purpose})
        return Said(
            pick(
                lang, "This changes something, so a person has to approve it.", "这会改变系统，需要有人批准。"
            ),
            (call,),
        )
    sent = tuple(ran.host for ran in runs if ran.exit is not None)
    job = Job((service(change.unit),), sent, talk.now)
    todo = {} if talk.answer_now else next_commands(job)
    if todo:
        checks = tuple(
            (
                "run_command",
                {
                    "hosts": on,
                    "command": command,
                    "purpose": pick(lang, "see how it is now", "查看现在的状态"),
                },
            )
            for command, on in todo.items()
        )
        return Said(pick(lang, "Looking how it is now.", "查看现在的状态。"), checks)
    done = [ran for ran in runs if ran.exit == 0]
    if done and "milestone" in talk.tools and "milestone" not in talk.called and not talk.answer_now:
        where = wording.listed([ran.host for ran in done], lang)
        text = pick(
            lang,
            f"{where}: `{change.command}` was run (exit 0)",
            f"{where}：已执行 `{change.command}`（exit 0）",
        )
        return Said("", (("milestone", {"kind": "change", "text": text}),))
    return Said(_changed(talk, change, job, runs))


def _changed(talk: Talk, change: Change, job: Job, runs: Sequence[Ran]) -> str:
    lang = talk.lang
    lines = [
        pick(
            lang,
            f"{ran.host}: `{change.command}` ran, exit 0.",
            f"{ran.host}：`{change.command}` 已执行，exit 0。",
        )
        if ran.exit == 0
        else pick(
            lang,
            f"{ran.host}: `{change.command}` failed ({wording.why_not(ran, lang)}).",
            f"{ran.host}：`{change.command}` 失败（{wording.why_not(ran, lang)}）。",
        )
        if ran.exit is not None
        else pick(
            lang,
            f"{ran.host}: `{change.command}` was not carried out, or its outcome is not known: {ran.problem}",
            f"{ran.host}：`{change.command}` 没有执行，或者结果未知：{ran.problem}",
        )
        for ran in runs
    ] or [pick(lang, f"I did not ask for `{change.command}`.", f"没有申请执行 `{change.command}`。")]
    found = findings(job.needs, job.hosts, talk.now, lang=lang)
    lines += wording.bullets(found, lang, hosts=len(job.hosts))
    return "\n\n".join(
        ("\n".join(lines), *([wording.what_ran(talk.now, lang)] if talk.now else []), wording.note(lang))
    )
