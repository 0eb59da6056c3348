"""Named checkers for programs whose words the table alone cannot judge: counts, lists of words, small languages.

A WHOLE checker reads every word after the program's name and returns the words to run. An AFTER checker
sees what is left once the table has read the options. Both raise NotProved with a reason for people.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from bot.policy import languages, network, sql
from bot.policy.kinds import check_kind, check_pattern
from bot.policy.lexer import Word, listed
from bot.policy.match import read_options
from bot.policy.paths import check_content, check_names
from bot.policy.spec import Given, NotProved, Options, Scene

LONGEST_SAMPLING_S = 120
MOST_PINGS = 20

_FIND_FLAGS = listed(
    "-print -print0 -ls -prune -quit -xdev -mount -depth -d -daystart -empty -executable -readable -writable "
    "-nouser -nogroup -true -false -not -a -and -o -or -noleaf -ignore_readdir_race ( ) !"
)
_FIND_VALUES = {
    **dict.fromkeys(
        [
            "-name",
            "-iname",
            "-path",
            "-ipath",
            "-wholename",
            "-iwholename",
            "-regex",
            "-iregex",
            "-lname",
            "-ilname",
        ],
        r".+",
    ),
    **dict.fromkeys(
        ["-mtime", "-atime", "-ctime", "-mmin", "-amin", "-cmin", "-links", "-inum", "-uid", "-gid", "-used"],
        r"[+-]?[0-9]{1,10}",
    ),
    **dict.fromkeys(listed("-maxdepth -mindepth"), r"[0-9]{1,3}"),
    **dict.fromkeys(listed("-user -group"), r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}"),
    **dict.fromkeys(
        listed("-newer -anewer -cnewer -samefile"), r"/(?!net/|misc/|afs/|[/.])(?:(?!//|/\.)[A-Za-z0-9_./-])+"
    ),
    "-newermt": r"[A-Za-z0-9 :.,+-]{1,40}",
    "-size": r"[+-]?[0-9]{1,12}[bcwkMG]?",
    "-type": r"[bcdpflsD](?:,[bcdpflsD])*",
    "-xtype": r"[bcdpfls]",
    "-perm": r"[-/]?[0-7]{1,4}|[-/]?[ugoa]*[+=][rwxst]+",
    "-fstype": r"[a-z0-9]{1,20}",
    "-printf": r"[^\x00-\x1f]{1,200}",
    "-regextype": r"[a-z-]{1,20}",
}
_FIND_VALUES_RE = {name: re.compile(shape) for name, shape in _FIND_VALUES.items()}
_EXEC = re.compile(
    r"ls(?: -[aAdhilnrsSt1FR]{1,12})?|stat|stat -c [%a-zA-Z :,]{1,40}|du(?: -[shkmabc]{1,6})?|wc(?: -[lcwm]{1,4})?"
    r"|md5sum|sha256sum|file(?: -b)?"
)
# Where -exec may read contents: nowhere that holds devices, pipes or files that answer to being read.
_EXEC_READS = re.compile(r"(?:wc|md5sum|sha256sum|file)\b")
_EXEC_ROOTS = re.compile(
    r"/(?:var/log|usr|boot|lib|lib64|bin|sbin|etc|opt|srv|home|var/lib|var/cache|var/www)(?:/[A-Za-z0-9_.@+-]+)*/?"
)
_XARGS = frozenset({"ls", "stat", "basename", "dirname"})
_PS_FORMATS = listed(
    "%cpu %mem args bsdtime c cmd comm command cp cputime egid egroup etime etimes euid euser fname gid group lstart "
    "lwp maj_flt majflt min_flt minflt ni nice nlwp nwchan pcpu pgid pgrp pid pmem ppid pri priority psr rgid rgroup rss "
    "rssize rsz ruid ruser s sess sgi_p sid size spid stat start start_time stime state stime sz thcount tid time tname "
    "tpgid tt tty ucmd ucomm uid uname unit user vsize vsz wchan cgroup cls rtprio sched slice oom oomadj"
)
_PS_BSD = re.compile(r"[aAfhHjlmnrSTuvwxX]{1,8}")
# Names that, read as BSD letters, end in an error before they can mean anything.
_PS_USER = re.compile(
    r"root|[0-9]{1,9}|[acefghjlmnrsuvwxHLSTVWXZA]*(?:[bdiyz_.BCDEFGIJKMPQRY-][A-Za-z0-9_.-]*|[pq][A-Za-z][A-Za-z0-9_.-]*)"
)
_PS = Options(
    flags=listed("-A -e -f -F -l -L -T -H -w -y -Z -a -d -j -M --forest --no-headers --no-heading --headers"),
    values={
        "-o": "columns", "-p": "numbers", "-C": "names", "-u": "user", "-U": "user", "--sort": "columns",
        "--ppid": "numbers", "--pid": "numbers", "--user": "user", "-O": "columns",
    },
)  # fmt: skip


def find(words: tuple[Word, ...], scene: Scene) -> tuple[Word, ...]:
    """Predicates from a list; `-exec` only programs that show names, sizes and digests."""
    at = 0
    while at < len(words) and words[at].text in ("-L", "-P", "-H"):
        at += 1
    start = at
    while at < len(words) and words[at].text[:1] not in ("-", "(", "!"):
        check_names(words[at], scene)
        at += 1
    options, roots = words[:start], words[start:at]
    while at < len(words):
        text = words[at].text
        if text in _FIND_FLAGS:
            at += 1
        elif text in _FIND_VALUES_RE:
            value = words[at + 1] if at + 1 < len(words) else None
            if value is None or value.glob or not _FIND_VALUES_RE[text].fullmatch(value.text):
                raise NotProved(f"find {text}: the value is not plain; quote it")
            if "regex" in text:
                check_pattern(value.text)
            at += 2
        elif text == "-exec":
            at = _find_exec(words, at + 1, options, roots)
        else:
            raise NotProved(f"find {text} is not known to only read; list first, then ask for the change")
    return words


def _find_exec(words: tuple[Word, ...], at: int, options: tuple[Word, ...], roots: tuple[Word, ...]) -> int:
    end = at
    while end < len(words) and words[end].text not in (";", "+"):
        end += 1
    texts = [word.text for word in words[at:end]]
    if end == len(words) or any(w.glob for w in words[at:end]) or texts[-1:] != ["{}"]:
        raise NotProved("find -exec must end with {} and ; or +")
    if not _EXEC.fullmatch(" ".join(texts[:-1])):
        raise NotProved("find -exec runs only ls, stat, du, wc, md5sum, sha256sum or file without asking")
    if _EXEC_READS.match(texts[0]):
        # Opening /dev/watchdog starts it, reading /proc/kmsg uses it up, and /dev/zero has no end.
        plain = roots and all(_EXEC_ROOTS.fullmatch(w.text) and ".." not in w.text for w in roots)
        if not plain or any(w.text != "-P" for w in options):
            raise NotProved(
                f"find -exec {texts[0]} reads files; without asking only below folders such as /var/log or /usr, without -L"
            )
    return end + 1


def xargs(words: tuple[Word, ...], scene: Scene) -> tuple[Word, ...]:
    """Only in front of programs that are harmless whatever words they get."""
    at = 0
    while at < len(words) and words[at].text.startswith("-"):
        if words[at].text == "-d" and at + 1 < len(words) and words[at + 1].text in ("\\n", "\\0"):
            at += 2
        elif words[at].text in ("-n", "-L") and at + 1 < len(words):
            check_kind("small", words[at + 1], scene)
            at += 2
        elif re.fullmatch(r"-(?:0|r|0r|r0|n[0-9]{1,3}|-null|-no-run-if-empty)|-d\\n", words[at].text):
            at += 1
        else:
            raise NotProved(f"xargs {words[at].text} is not known to be harmless")
    if at == len(words) or words[at].text not in _XARGS:
        raise NotProved("xargs gives its command any words; it runs only ls or stat without asking")
    for word in words[at + 1 :]:
        if word.glob or not re.fullmatch(r"-[A-Za-z1]{1,12}|--[a-z-]{1,20}", word.text):
            raise NotProved(f"xargs {words[at].text}: {word.text} is not a plain option")
    return words


def ps(words: tuple[Word, ...], scene: Scene) -> tuple[Word, ...]:
    """No environment (BSD `e`), and only columns that do not show it."""
    if len(words) == 1 and words[0].text in ("-aux", "-auxww", "-auxf", "-auxwww"):
        return words
    given = read_options(words, _PS, scene)
    for word in given.words:
        if word.glob or not (_PS_BSD.fullmatch(word.text) or re.fullmatch(r"[0-9]{1,9}", word.text)):
            raise NotProved(f"ps {word.text} may show the environment of processes, with secrets in it")
    for name, value in given.options:
        if name in ("-o", "-O", "--sort") and value:
            for column in value.text.split(","):
                key = column.strip("+-").split("=")[0].split(":")[0]
                if key not in _PS_FORMATS:
                    raise NotProved(f"ps: the column {key} is not known to be harmless")
        if name in ("-u", "-U", "--user") and value and not _PS_USER.fullmatch(value.text):
            # A user that does not exist makes ps read every word anew as BSD letters, `e` among them.
            raise NotProved(f"ps {name} {value.text}: use ps -ef | grep {value.text}")
    return words


def sampling(given: Given, scene: Scene) -> None:
    """INTERVAL and COUNT: with an interval there must be a count, and the whole must end in time."""
    numbers = [int(w.text) for w in given.words if w.text.isdigit()]
    if len(numbers) == 1 and not scene.bounded:
        raise NotProved("an interval without a count does not end; add a count, such as 1 5")
    if len(numbers) > 2:
        raise NotProved("more numbers than an interval and a count")
    if len(numbers) == 2 and numbers[0] * numbers[1] > LONGEST_SAMPLING_S:
        raise NotProved(f"would sample for more than {LONGEST_SAMPLING_S} seconds; use a smaller count")


def follow(given: Given, scene: Scene) -> None:
    """`-f` does not end by itself."""
    # journalctl has a -F that takes a value and ends.
    following = any(name in ("-f", "-F", "--follow") and value is None for name, value in given.options)
    if following and not scene.bounded:
        raise NotProved("following is unbounded; try: timeout 10 COMMAND -f … (up to 60 seconds)")


def top(given: Given, scene: Scene) -> None:
    """Few rounds only."""
    rounds = int(given.value("-n") or "1")
    delay = float(given.value("-d") or "3")
    if not 0 < rounds * delay <= LONGEST_SAMPLING_S:
        raise NotProved("top for too long; use a smaller -n")


def ping(given: Given, scene: Scene) -> None:
    """A count of at most 20."""
    count = given.value("-c")
    if not count or not 0 < int(count) <= MOST_PINGS:
        raise NotProved(f"ping needs -c with at most {MOST_PINGS}")
    if not 0.2 <= float(given.value("-i") or "1") <= 10:
        raise NotProved("ping -i takes from 0.2 to 10 seconds")


def grep(given: Given, scene: Scene) -> tuple[str, ...]:
    """The first word is the pattern unless `-e` gave it; the others are files. `-r` passes over secrets."""
    words = given.words
    if not given.has("-e", "--regexp"):
        if not words:
            raise NotProved("grep lacks a pattern")
        check_kind("pattern", words[0], scene)
        words = words[1:]
    if (include := given.value("--include")) and not re.fullmatch(r"[A-Za-z0-9_.*-]*\.log[0-9.*]*", include):
        raise NotProved("grep --include takes names of logs, such as '*.log'")
    if given.has("-r", "--recursive"):
        if not words:
            raise NotProved("grep -r without a folder reads whatever folder it stands in; name the files")
        for word in words:
            if word.glob or not re.fullmatch(r"/var/log(?:/[A-Za-z0-9_-][A-Za-z0-9_.-]*)*/?", word.text):
                raise NotProved("grep -r is known to be harmless only below /var/log")
            if word.text.rstrip("/") != "/var/log":
                check_content(Word(word.parts, word.text.rstrip("/")), scene)
        return tuple(f"--exclude={name}" for name in scene.rules.excluded)
    for word in words:
        check_kind("file", word, scene)
    return ()


def echo(words: tuple[Word, ...], scene: Scene) -> tuple[Word, ...]:
    """Any words; globs show names only."""
    for word in words:
        if word.glob:
            check_names(word, scene)
    return words


def printf(words: tuple[Word, ...], scene: Scene) -> tuple[Word, ...]:
    """`printf -v` sets a variable in some shells; a wide field can fill the memory."""
    if (
        not words
        or words[0].text.startswith("-")
        or words[0].glob
        or re.search(r"%[^a-zA-Z%]*[0-9]{4}|%[^a-zA-Z%]*\*", words[0].text)
    ):
        raise NotProved("printf with an option, a very wide field or a * width")
    return echo(words, scene)


def seq(given: Given, scene: Scene) -> None:
    """A bounded list of numbers."""
    if any(abs(int(w.text)) > 100_000 for w in given.words):
        raise NotProved("seq over more than 100000 may not end soon")


def iptables(given: Given, scene: Scene) -> tuple[str, ...]:
    """A list without `-n` asks the network for the names of addresses."""
    return ("-n",) if given.has("-L") and not given.has("-n") else ()


def service(given: Given, scene: Scene) -> None:
    """`--status-all` alone, or NAME status."""
    if len(given.words) != (0 if given.has("--status-all") else 2):
        raise NotProved("service is known to only read as: service NAME status, service --status-all")


def unit_show(given: Given, scene: Scene) -> None:
    """Not the environment of a unit by name."""
    for name, value in given.options:
        if name in ("-p", "--property") and value and "environment" in value.text.lower():
            raise NotProved("WARNING: the environment of a unit may hold secrets; name other properties")


def docker_inspect(given: Given, scene: Scene) -> None:
    """Without a template it prints the container's environment."""
    if given.value("-f", "--format") in (None, "json", "table"):
        raise NotProved(
            "WARNING: docker inspect shows the container's environment, in which secrets may stand; "
            "try: docker inspect --format '{{json .State}}' NAME"
        )


def test(words: tuple[Word, ...], scene: Scene) -> tuple[Word, ...]:
    """One question about one path."""
    texts = [w.text for w in words]
    if len(words) != 2 or any(w.glob for w in words) or not re.fullmatch(r"-[bcdefgGhkLOprsSuwx]", texts[0]):
        raise NotProved("test is known only as: test -f PATH")
    check_names(words[1], scene)
    return words


WHOLE: dict[str, Callable[[tuple[Word, ...], Scene], tuple[Word, ...]]] = {
    "find": find,
    "xargs": xargs,
    "ps": ps,
    "ip": network.ip,
    "echo": echo,
    "printf": printf,
    "test": test,
    "awk": languages.awk,
    "sed": languages.sed,
    "jq": languages.jq,
    "curl": network.curl,
    "redis": network.redis,
    "dig": network.dig,
}
AFTER: dict[str, Callable[[Given, Scene], tuple[str, ...] | None]] = {
    "sampling": sampling,
    "follow": follow,
    "top": top,
    "ping": ping,
    "grep": grep,
    "seq": seq,
    "iptables": iptables,
    "service": service,
    "docker_inspect": docker_inspect,
    "unit_show": unit_show,
    "psql": sql.psql,
    "mysql": sql.mysql,
    "influx": sql.influx,
    "kubectl": network.kubectl,
    "kubectl_describe": network.kubectl_describe,
}
