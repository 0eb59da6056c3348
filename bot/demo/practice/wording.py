"""The practice model's fixed sentences and how an answer is laid out, in English and Chinese. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from bot.demo.practice.findings import Finding, pick
from bot.demo.practice.reading import Lang, Ran
from bot.demo.practice.topics import Topic

_TOPICS = {
    Topic.DISK: ("disk", "磁盘"),
    Topic.MEMORY: ("memory", "内存"),
    Topic.LOAD: ("load", "负载"),
    Topic.SERVICE: ("services", "服务"),
    Topic.VERSIONS: ("versions", "版本"),
    Topic.LOGS: ("logs", "日志"),
    Topic.NETWORK: ("network", "网络"),
}


def label(topic: Topic, lang: Lang) -> str:
    return pick(lang, *_TOPICS[topic])


def listed(words: Sequence[str], lang: Lang) -> str:
    """`a, b and c`"""
    if len(words) < 2:
        return "".join(words)
    return pick(lang, ", ", "、").join(words[:-1]) + pick(lang, " and ", "和") + words[-1]


def note(lang: Lang) -> str:
    """Who is speaking."""
    return pick(
        lang,
        "(This was written by opsthread's practice model: fixed rules, not a language model. "
        "Set OPENAI_API_KEY for a real one.)",
        "（以上由 opsthread 的练习模型写出：它只有固定规则，不是语言模型。设置 OPENAI_API_KEY 可使用真正的模型。）",
    )


def abilities(lang: Lang) -> str:
    return pick(
        lang,
        "I can look at: disk, memory, load and CPU, services, versions of programs, errors in the logs, network ports; "
        'run a command you write out ("run `uptime`"); ask for a change such as "restart nginx"; and go on with '
        '"continue".',
        "我能查看：磁盘、内存、负载和 CPU、服务状态、程序版本、日志中的错误、网络端口；运行你写出的命令（“运行 `uptime`”）；"
        "申请变更，例如“重启 nginx”；也可以说“继续”。",
    )


def greeting(lang: Lang) -> str:
    return "\n\n".join((pick(lang, "Hello.", "你好。"), abilities(lang), note(lang)))


def not_understood(lang: Lang) -> str:
    said = pick(
        lang,
        "I do not understand this question, so I ran nothing.",
        "我没有理解这个问题，所以没有运行任何命令。",
    )
    return "\n\n".join((said, abilities(lang), note(lang)))


def why_not(ran: Ran, lang: Lang) -> str:
    """Why a run gave no answer, in a few words."""
    if ran.exit is None:
        return ran.problem
    lines = (ran.stderr.strip() or ran.stdout.strip()).splitlines()
    first = lines[0].strip()[:120] if lines else pick(lang, "no output", "没有输出")
    return f"exit {ran.exit}, {first}".replace("`", "'")


def line(finding: Finding, lang: Lang, *, host: bool) -> str:
    """`web-1 · disk: …`"""
    where = f"{finding.host} · " if host else ""
    return f"{where}{label(finding.topic, lang)}{pick(lang, ': ', '：')}{finding.text}"


def bullets(findings: Sequence[Finding], lang: Lang, *, hosts: int) -> list[str]:
    """One line a finding, with its host where there are several."""
    return [f"- {line(finding, lang, host=hosts > 1)}" for finding in findings]


def lead(findings: Sequence[Finding], hosts: Sequence[str], lang: Lang) -> str:
    """The conclusion in a line."""
    where = listed(list(hosts), lang)
    if not findings:
        return pick(lang, f"I could not find out anything on {where}.", f"在 {where} 上没有查到任何结果。")
    if all(f.topic is Topic.VERSIONS for f in findings):
        return pick(lang, f"Versions on {where}:", f"{where} 上的版本：")
    alarms = [f for f in findings if f.alarming]
    if not alarms:
        return pick(
            lang,
            f"Nothing needs attention in what I looked at on {where}:",
            f"在 {where} 上查看的内容没有异常：",
        )
    topics = list(dict.fromkeys(label(f.topic, lang) for f in alarms))
    return pick(
        lang,
        f"Needs attention on {where}: {listed(topics, lang)}.",
        f"{where} 上需要注意：{listed(topics, lang)}。",
    )


def what_ran(runs: Sequence[Ran], lang: Lang) -> str:
    """Every command with how it ended, as evidence."""
    several = len({ran.host for ran in runs}) > 1
    by_command: dict[str, list[str]] = {}
    for ran in runs:
        end = pick(lang, "not run", "未运行") if ran.exit is None else f"exit {ran.exit}"
        by_command.setdefault(ran.command, []).append(f"{ran.host} {end}" if several else end)
    each = [f"`{command}` ({', '.join(dict.fromkeys(ends))})" for command, ends in by_command.items()]
    return pick(lang, "What I ran: ", "运行过的命令：") + pick(lang, ", ", "，").join(each)


def quoted(ran: Ran, lang: Lang) -> str:
    """A command's output as it came, at most 40 lines."""
    lines = ran.output.splitlines()
    shown = "\n".join(lines[:40]).replace("```", "'''")
    more = len(lines) - 40
    tail = pick(lang, f"\n… {more} more lines", f"\n…… 还有 {more} 行") if more > 0 else ""
    return f"```\n{shown}{tail}\n```" if lines else pick(lang, "(no output)", "（没有输出）")
