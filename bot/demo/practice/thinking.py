"""The practice model's next reply: what is wanted, on which hosts, and who takes it from there. Pure, like a model.

Everything follows from the request: what was run is never run again in a turn, so it always comes to an end.
"""

from __future__ import annotations

from bot.demo.practice import wording
from bot.demo.practice.errands import change_service, done_before, literal
from bot.demo.practice.findings import pick
from bot.demo.practice.intents import (
    change_of,
    is_greeting,
    literal_command,
    named_hosts,
    unknown_host,
    wants_to_continue,
)
from bot.demo.practice.investigation import Job, Said, findings, investigate
from bot.demo.practice.reading import Talk
from bot.demo.practice.topics import Topic, needs_of, topics_of

MANY = 5  # more hosts than this are not looked at unless they are named


def next_reply(talk: Talk) -> Said:
    """What to say or call next."""
    lang = talk.lang
    if "run_command" not in talk.tools:
        return Said(
            pick(lang, "No tools were offered to me.", "没有提供给我任何工具。") + "\n\n" + wording.note(lang)
        )
    question = talk.question
    going_on = wants_to_continue(question)
    topics = topics_of(question)
    subject = question
    if not topics and (going_on or _is_follow_up(talk)):
        subject = next((q for q in reversed(talk.earlier) if not wants_to_continue(q)), "")
        topics = topics_of(subject)
    command, change = literal_command(subject), change_of(subject)
    if not (topics or command or change):
        return _small_talk(talk, going_on=going_on)
    if not talk.hosts:
        return _ask_for_hosts(talk)
    hosts = _choose_hosts(talk, subject, careful=change is not None)
    if isinstance(hosts, Said):
        return hosts
    wanted = command or (change.command if change else "")
    if wanted and going_on and (told := done_before(talk, wanted)):
        return told
    if command:
        return literal(talk, command, hosts)
    if change:
        return change_service(talk, change, hosts)
    return investigate(talk, _job(talk, subject, topics=topics, hosts=hosts, going_on=going_on))


def _is_follow_up(talk: Talk) -> bool:
    """`and on web-2?` asks the question before again."""
    plain = talk.question
    return bool(named_hosts(plain, talk.hosts)) and not (literal_command(plain) or change_of(plain))


def _small_talk(talk: Talk, *, going_on: bool) -> Said:
    lang = talk.lang
    if going_on:
        said = pick(lang, "There is nothing here to go on from yet.", "这里还没有可以继续的内容。")
        return Said("\n\n".join((said, wording.abilities(lang), wording.note(lang))))
    return Said(wording.greeting(lang) if is_greeting(talk.question) else wording.not_understood(lang))


def _ask_for_hosts(talk: Talk) -> Said:
    if "list_hosts" in talk.tools and "list_hosts" not in talk.called and not talk.answer_now:
        return Said(
            pick(talk.lang, "First, which hosts are there.", "先看看有哪些主机。"),
            (("list_hosts", {"filter": ""}),),
        )
    return Said(
        pick(
            talk.lang,
            "I may use no host here, so I ran nothing. Whoever keeps hosts.yml can add an access rule.",
            "这里没有我可以使用的主机，所以没有运行任何命令。请 hosts.yml 的维护者添加访问规则。",
        )
        + "\n\n"
        + wording.note(talk.lang)
    )


def _choose_hosts(talk: Talk, subject: str, *, careful: bool) -> tuple[str, ...] | Said:
    """Named ones, else those used before, else all when they are few. careful: never several by default."""
    names = [host.name for host in talk.hosts]
    stranger = unknown_host(talk.question, talk.hosts)
    named = named_hosts(talk.question, talk.hosts) or named_hosts(subject, talk.hosts)
    if named:
        return named
    listing = ", ".join(names[:20])
    if stranger:
        said = pick(
            talk.lang,
            f"I may not use a host {stranger} here; I may use: {listing}.",
            f"这里不能使用主机 {stranger}；可以使用：{listing}。",
        )
        return Said(said + "\n\n" + wording.note(talk.lang))
    used = tuple(dict.fromkeys(ran.host for ran in talk.before if ran.host in names))
    if used and subject != talk.question:
        return used
    if len(names) == 1 or (len(names) <= MANY and not careful):
        return tuple(names)
    said = pick(talk.lang, f"On which host? I may use: {listing}.", f"在哪台主机上？可以使用：{listing}。")
    return Said(said + "\n\n" + wording.note(talk.lang))


def _job(
    talk: Talk, subject: str, *, topics: tuple[Topic, ...], hosts: tuple[str, ...], going_on: bool
) -> Job:
    needs = needs_of(topics, subject)
    if not going_on:
        return Job(tuple(n for n in needs if not n.deeper), hosts, talk.now)
    before = next((q for q in reversed(talk.earlier) if topics_of(q)), "")
    earlier = findings(needs_of(topics_of(before), before), hosts, talk.before, lang=talk.lang)
    fresh = subject == talk.question  # "continue with memory": the topic named is looked at anew
    runs = talk.now if fresh else (*talk.before, *talk.now)
    return Job(needs, hosts, runs, tuple(earlier), going_on=True)
