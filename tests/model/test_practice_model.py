"""The practice model over HTTP: chooses commands by question, reads what hosts print, concludes with figures."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

import aiohttp
import pytest

from bot.demo.practice import PracticeModel
from bot.model import OpenAIModel
from tests.model.play import Play, Shell

DF = """Filesystem      Size  Used Avail Use% Mounted on
overlay          80G   17G   63G  22% /
tmpfs            64M   64M     0 100% /dev
/dev/vda1        80G   17G   63G  22% /etc/hosts
"""
DF_FULL = """Filesystem      Size  Used Avail Use% Mounted on
/dev/sda1        80G   17G   63G  22% /
/dev/sdb1       200G  186G   14G  93% /var
/dev/sdc1       100G   88G   12G  88% /srv/my data
/dev/loop3       64M   64M     0 100% /snap/core/1
"""
DF_I = """Filesystem      Inodes  IUsed   IFree IUse% Mounted on
overlay        5242880 131072 5111808    3% /
"""
FREE = """               total        used        free      shared  buff/cache   available
Mem:            7953         812        5000           9        2141        6800
Swap:           2047           0        2047
"""
PS = """USER         PID %CPU %MEM    VSZ   RSS TTY      STAT START   TIME COMMAND
root           1  0.0  0.1   2480  1320 ?        Ss   00:12   0:00 /sbin/init
postgres     412  3.5 12.4 212480 91320 ?        Ss   00:12   0:09 postgres: writer process
www-data     513 41.0  2.0  12480  1320 ?        S    00:12   0:01 nginx: worker process
root         999 99.0  0.1   2480  1320 ?        R    00:12   0:00 ps aux
"""
PS_EO = """    PID COMMAND         %CPU %MEM
    513 nginx           41.0  2.0
    999 ps              99.0  0.1
    412 postgres         3.5 12.4
"""
STATUS = """● nginx.service - A high performance web server
     Loaded: loaded (/lib/systemd/system/nginx.service; enabled; preset: enabled)
     Active: active (running) since Mon 2026-11-30 09:00:00 UTC; 15h ago
   Main PID: 513 (nginx)
"""
NO_SYSTEMD = "System has not been booted with systemd as init system (PID 1). Can't operate."

USUAL: dict[str, tuple[int, str, str]] = {
    "df -h": (0, DF, ""),
    "df -i": (0, DF_I, ""),
    "ls -lhS /var/log": (0, "total 2M\n-rw-r----- 1 root adm 1.9M Nov 30 23:00 auth.log\n", ""),
    "free -m": (0, FREE, ""),
    "ps aux": (0, PS, ""),
    "ps aux --sort=-%mem": (0, PS, ""),
    "ps -eo pid,comm,%cpu,%mem --sort=-%cpu": (0, PS_EO, ""),
    "uptime": (0, " 10:02:11 up 12 days,  3:04,  1 user,  load average: 0.15, 0.10, 0.09\n", ""),
    "nproc": (0, "4\n", ""),
    "vmstat 1 2": (
        0,
        "procs ---memory---\n r  b   swpd   free us sy id wa st\n 1  0 0 9 1 1 97 1 0\n 0  0 0 9 2 1 95 2 0\n",
        "",
    ),
    "python3 --version": (0, "Python 3.11.7\n", ""),
    "ssh -V": (0, "", "OpenSSH_9.2p1 Debian-2+deb12u3, OpenSSL 3.0.14 4 Jun 2024\n"),
    "nginx -v": (0, "", "nginx version: nginx/1.22.1\n"),
    "psql --version": (0, "psql (PostgreSQL) 15.8 (Debian 15.8-0+deb12u1)\n", ""),
    "uname -a": (0, "Linux web-1 6.1.0-25-amd64 #1 SMP Debian x86_64 GNU/Linux\n", ""),
    "cat /etc/os-release": (0, 'PRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\nID=debian\n', ""),
    "systemctl --failed --no-pager": (
        0,
        "  UNIT          LOAD   ACTIVE SUB    DESCRIPTION\n● app.service   loaded failed failed The app\n\n1 loaded units.\n",
        "",
    ),
    "systemctl status nginx --no-pager": (0, STATUS, ""),
    "journalctl -p err -n 50 --no-pager": (
        0,
        "Nov 30 23:00:01 web-1 app[77]: connect() failed: no route to host\nNov 30 23:00:02 web-1 app[77]: giving up\n",
        "",
    ),
    "ss -tln": (
        0,
        "State  Recv-Q Send-Q Local Address:Port Peer Address:Port\nLISTEN 0 128 0.0.0.0:22 0.0.0.0:*\n"
        "LISTEN 0 511 *:80 *:*\nLISTEN 0 244 [::1]:5432 [::]:*\n",
        "",
    ),
}


def hosts_that(**changed: tuple[int, str, str] | str) -> Shell:
    """Hosts that answer as usual except for some commands, named by how they begin (`_` for a space)."""
    begins = {name.replace("_", " "): answer for name, answer in changed.items()}

    def run(_host: str, command: str) -> tuple[int, str, str] | str:
        for begin, answer in begins.items():
            if command.startswith(begin):
                return answer
        return USUAL.get(command, (127, "", f"sh: 1: {command.split(maxsplit=1)[0]}: not found"))

    return run


def missing(program: str) -> tuple[int, str, str]:
    return (127, "", f"sh: 1: {program}: not found")


Start = Callable[..., Play]


@pytest.fixture
async def play() -> AsyncIterator[Start]:
    practice = PracticeModel()
    model = OpenAIModel(base_url=await practice.start(), api_key="", name="practice", budget_s=2)
    plays: list[Play] = []

    def start(shell: Shell | None = None, hosts: tuple[str, ...] = ("demo",), *, listed: bool = True) -> Play:
        plays.append(Play(model, shell or hosts_that(), hosts, listed))
        return plays[-1]

    yield start
    await model.aclose()
    await practice.stop()
    assert [fault for each in plays for fault in each.violations] == []


async def test_the_disk_and_two_versions_are_answered_with_figures(play: Start) -> None:
    session = play()
    answer = await session.ask("is the disk filling up, and which versions of python and openssh run here?")
    assert session.commands == ["df -h", "df -i", "python3 --version", "ssh -V"]
    for words in ("/ at 22 % (17G of 80G used", "Python 3.11.7", "OpenSSH 9.2p1", "`df -h` (exit 0)"):
        assert words in answer
    assert "100" not in answer  # tmpfs is no disk
    assert "practice model" in answer
    assert "not a language model" in answer


async def test_the_same_in_chinese_is_answered_in_chinese(play: Start) -> None:
    session = play()
    answer = await session.ask("磁盘快满了吗？这里运行的python和openssh是什么版本？")
    assert session.commands == ["df -h", "df -i", "python3 --version", "ssh -V"]
    for words in ("/，已用 22%（80G 中用了 17G", "Python 3.11.7", "OpenSSH 9.2p1", "`df -h` (exit 0)"):
        assert words in answer
    assert "练习模型" in answer
    assert "不是语言模型" in answer


async def test_a_question_of_several_topics_is_planned_and_its_plan_ends_done(play: Start) -> None:
    session = play()
    await session.ask("check disk and memory")
    first, last = session.named("plan")
    assert [step["state"] for step in first["steps"]] == ["doing", "todo", "todo"]
    assert [step["state"] for step in last["steps"]] == ["done", "done", "doing"]
    assert session.calls[0][0] == "plan"


async def test_one_milestone_tells_the_most_alarming_finding(play: Start) -> None:
    session = play(hosts_that(df__h=(0, DF_FULL, ""), **{"df_-h": (0, DF_FULL, "")}))
    answer = await session.ask("how full are the disks, and which python version?")
    (told,) = session.named("milestone")
    assert told["kind"] == "finding"
    assert "/var is 93 % full (186G of 200G used, 14G free)" in told["text"]
    assert "/srv/my data is 88 % full" in told["text"]
    assert "Needs attention on demo: disk" in answer
    assert "/snap" not in answer


async def test_a_milestone_is_told_even_when_all_is_well(play: Start) -> None:
    session = play()
    await session.ask("磁盘空间够吗")
    (told,) = session.named("milestone")
    assert "已用 22%" in told["text"]


async def test_memory_and_load_cite_what_was_read(play: Start) -> None:
    session = play()
    answer = await session.ask("how are memory and cpu load?")
    assert "6800 MB of 7953 MB available (86 %)" in answer
    assert "postgres: writer process` (pid 412) with 12.4 %" in answer
    assert "0.15, 0.10, 0.09 over 1, 5, 15 minutes on 4 cores; up for 12 days,  3:04" in answer
    assert "`nginx` (pid 513) with 41 %" in answer


async def test_a_container_without_the_usual_programs_is_read_from_proc(play: Start) -> None:
    meminfo = "MemTotal:        8000000 kB\nMemFree:          100000 kB\nMemAvailable:     400000 kB\n"
    shell = hosts_that(
        free=missing("free"),
        ps=missing("ps"),
        uptime=missing("uptime"),
        nproc=missing("nproc"),
        lscpu=missing("lscpu"),
        **{
            "cat_/proc/meminfo": (0, meminfo, ""),
            "cat_/proc/loadavg": (0, "9.50 8.00 7.00 3/120 4242\n", ""),
        },
    )
    session = play(shell)
    answer = await session.ask("memory and load?")
    assert "390 MB of 7812 MB available (5 %)" in answer
    assert "high, 9.50, 8.00, 7.00" in answer
    assert "unknown, nothing answered (`ps aux --sort=-%mem`: exit 127, sh: 1: ps: not found" in answer
    assert "scarce" in session.named("milestone")[0]["text"]


async def test_a_service_that_systemd_knows(play: Start) -> None:
    session = play()
    assert "nginx is active (running) since Mon 2026-11-30 09:00:00 UTC" in await session.ask(
        "is nginx running?"
    )
    assert session.commands == ["systemctl status nginx --no-pager"]


@pytest.mark.parametrize(
    "status", [missing("systemctl"), (1, "", NO_SYSTEMD)], ids=["no program", "no systemd"]
)
async def test_without_systemd_the_processes_tell(play: Start, status: tuple[int, str, str]) -> None:
    session = play(hosts_that(systemctl=status))
    answer = await session.ask("nginx 在运行吗？")
    assert session.commands == ["systemctl status nginx --no-pager", "ps aux"]
    assert "nginx 正在运行：`nginx: worker process`（pid 513）" in answer


async def test_a_dead_unit_is_a_finding_though_its_status_exits_3(play: Start) -> None:
    dead = "○ nginx.service\n     Active: inactive (dead) since Mon 2026-11-30 09:00:00 UTC; 1h ago\n"
    session = play(hosts_that(systemctl_status=(3, dead, "")))
    answer = await session.ask("is the nginx service up?")
    assert "nginx is inactive (dead)" in answer
    assert "Needs attention" in answer


async def test_failed_units_are_named(play: Start) -> None:
    assert "1 failed units: app.service" in await play().ask("are any services failing?")


async def test_versions_of_the_programs_that_are_named(play: Start) -> None:
    session = play()
    answer = await session.ask("which version of nginx, postgres, the kernel and the OS?")
    for words in (
        "nginx 1.22.1",
        "PostgreSQL 15.8",
        "Linux 6.1.0-25-amd64",
        "Debian GNU/Linux 12 (bookworm)",
    ):
        assert words in answer


async def test_a_program_that_is_not_there_is_said_so(play: Start) -> None:
    answer = await play(hosts_that(psql=missing("psql"), postgres=missing("postgres"))).ask(
        "postgres version?"
    )
    assert (
        "PostgreSQL unknown, nothing answered (`psql --version`: exit 127, sh: 1: psql: not found" in answer
    )


async def test_errors_in_the_journal_are_counted_and_the_last_one_quoted(play: Start) -> None:
    answer = await play().ask("any errors in the logs?")
    assert "2 error lines in journal; the last: `Nov 30 23:00:02 web-1 app[77]: giving up`" in answer


async def test_without_a_journal_the_log_files_are_tried(play: Start) -> None:
    syslog = "Nov 30 a kernel: fine\nNov 30 b app: ERROR cannot write\nNov 30 c mount: errors=remount-ro\n"
    shell = hosts_that(
        journalctl=(0, "-- No entries --", "No journal files were found."), tail=(0, syslog, "")
    )
    session = play(shell)
    answer = await session.ask("日志里有错误吗")
    assert session.commands == ["journalctl -p err -n 50 --no-pager", "tail -n 100 /var/log/syslog"]
    assert "/var/log/syslog 中有 1 行错误；最后一行：`Nov 30 b app: ERROR cannot write`" in answer


async def test_listening_ports(play: Start) -> None:
    assert "3 TCP ports listen: 22, 80, 5432" in await play().ask("which ports are listening?")
    raw = "  sl  local_address rem_address   st\n   0: 0100007F:1538 00000000:0000 0A 00000000:00000000 00\n"
    shell = hosts_that(ss=missing("ss"), netstat=missing("netstat"), **{"cat_/proc/net/tcp": (0, raw, "")})
    assert "正在监听 1 个 TCP 端口：5432" in await play(shell).ask("监听了哪些端口")


async def test_several_hosts_are_asked_at_once_and_answered_apart(play: Start) -> None:
    def shell(host: str, command: str) -> tuple[int, str, str] | str:
        return (0, DF_FULL if host == "db-1" else DF, "") if command == "df -h" else USUAL[command]

    session = play(shell, ("web-1", "db-1"))
    answer = await session.ask("disk space?")
    assert session.named("run_command")[0]["hosts"] == ["web-1", "db-1"]
    assert "- web-1 · disk: nothing is filling up" in answer
    assert "- db-1 · disk: filling up: /var is 93 % full" in answer


async def test_a_host_that_is_named_is_the_only_one_asked(play: Start) -> None:
    session = play(hosts=("web-1", "web-10", "db-1"))
    await session.ask("web-1的磁盘怎么样")
    assert session.named("run_command")[0]["hosts"] == ["web-1"]
    await session.ask("and on db-1?")
    assert session.commands == ["df -h", "df -i"]
    assert session.named("run_command")[0]["hosts"] == ["db-1"]


async def test_hosts_that_are_not_listed_are_asked_for_first(play: Start) -> None:
    session = play(hosts=("web-1",), listed=False)
    assert "22 %" in await session.ask("disk?")
    assert session.calls[0] == ("list_hosts", {"filter": ""})


async def test_nobody_with_hosts_is_told_so(play: Start) -> None:
    session = play(hosts=(), listed=False)
    assert "no host" in await session.ask("disk?")
    assert session.commands == []


async def test_a_strange_host_or_too_many_are_asked_back(play: Start) -> None:
    session = play(hosts=tuple(f"web-{n}" for n in range(1, 8)))
    assert "I may not use a host web-99" in await session.ask("disk on web-99?")
    assert "On which host? I may use: web-1, web-2" in await session.ask("disk?")
    assert session.commands == []


async def test_continue_tells_what_was_found_and_looks_further(play: Start) -> None:
    session = play()
    first = await session.ask("is the disk full?")
    assert "`ls -lhS /var/log`" in first
    second = await session.ask("continue")
    assert session.commands == ["ls -lhS /var/log"]
    assert "Found earlier in this thread:\n- disk: nothing is filling up" in second
    assert "the biggest file in /var/log is auth.log (1.9M)" in second
    third = await session.ask("继续")
    assert session.commands == []
    assert "此前在本会话中查到" in third
    assert "没有再运行新的命令" in third


async def test_continue_runs_what_a_limit_had_kept_from_running(play: Start) -> None:
    session = play(hosts_that(journalctl=missing("journalctl"), tail=(0, "a\nb error\n", "")))
    stopped = await session.ask("errors in the logs?", stop_after=2)
    assert session.commands == ["journalctl -p err -n 50 --no-pager"]
    assert 'Next I would look at `tail -n 100 /var/log/syslog`: say "continue"' in stopped
    answer = await session.ask("continue")
    assert "tail -n 100 /var/log/syslog" in session.commands
    assert "journalctl -p err -n 50 --no-pager" not in session.commands
    assert "1 error lines in /var/log/syslog" in answer


async def test_continue_with_another_topic_looks_at_that(play: Start) -> None:
    session = play()
    await session.ask("is the disk full?")
    answer = await session.ask("please continue with memory")
    assert "free -m" in session.commands
    assert "Found earlier in this thread:\n- disk: nothing" in answer


async def test_continue_with_nothing_before_says_so(play: Start) -> None:
    assert "nothing here to go on from" in await play().ask("continue")


@pytest.mark.parametrize(
    ("question", "command"),
    [
        ("restart nginx", "systemctl restart nginx"),
        ("请重启 nginx", "systemctl restart nginx"),
        ("could you please reload the nginx service", "systemctl reload nginx"),
        ("停止nginx服务", "systemctl stop nginx"),
    ],
)
async def test_a_change_is_asked_for_and_then_looked_at(play: Start, question: str, command: str) -> None:
    session = play(hosts_that(**{command.replace(" ", "_"): (0, "", "")}))
    answer = await session.ask(question)
    assert session.commands == [command, "systemctl status nginx --no-pager"]
    assert session.named("milestone")[0]["kind"] == "change"
    assert command in answer
    assert "active (running)" in answer


@pytest.mark.parametrize(
    "headline",
    [
        "denied by U01BOB; do not ask for it again in this turn",
        "not run: nobody answered the approval in time",
        "refused: it needs an approval, and no access rule names approvers for demo",
        "unknown: the connection broke. It was not run again.",
    ],
)
async def test_a_change_that_was_not_made_is_told_and_not_asked_twice(play: Start, headline: str) -> None:
    session = play(hosts_that(systemctl_restart=headline))
    answer = await session.ask("restart nginx")
    assert session.commands == ["systemctl restart nginx"]
    assert headline in answer
    assert session.named("milestone") == []


async def test_continue_never_repeats_a_change_that_was_sent_or_denied(play: Start) -> None:
    for headline in ((0, "", ""), "denied by U01BOB", "unknown: the connection broke. It was not run again."):
        session = play(hosts_that(systemctl_restart=headline))
        await session.ask("restart nginx")
        answer = await session.ask("continue")
        assert session.commands == []
        assert "I do not do it again by myself" in answer
    session = play(hosts_that(systemctl_restart="not run: nobody answered the approval in time"))
    await session.ask("restart nginx")
    await session.ask("继续")
    assert session.commands == ["systemctl restart nginx"]


@pytest.mark.parametrize(
    "question",
    [
        "why did nginx restart?",
        "did you stop it?",
        "is nginx restarting?",
        "when was the last restart of nginx?",
        "start looking at the disk",
    ],
)
async def test_a_change_that_is_only_spoken_of_is_not_asked_for(play: Start, question: str) -> None:
    session = play()
    await session.ask(question)
    assert not any(
        c.startswith(("systemctl restart", "systemctl stop", "systemctl start ")) for c in session.commands
    )


@pytest.mark.parametrize(
    ("question", "command"),
    [
        ("run `ls -l /srv | wc -l`", "ls -l /srv | wc -l"),
        ("运行 `echo 你好`", "echo 你好"),
        ("please run df -h on demo", "df -h"),
        ("echo hello   world", "echo hello   world"),
        ("run ```sh\nrm -rf /tmp/x\n```", "rm -rf /tmp/x"),
    ],
)
async def test_a_command_that_is_written_out_is_run_as_it_is(
    play: Start, question: str, command: str
) -> None:
    session = play(lambda _host, _command: (3, "line one\nline two\n", "oh dear\n"))
    answer = await session.ask(question)
    assert session.commands == [command]
    assert f"`{command}`" in answer
    assert "exit 3" in answer or "退出码是 3" in answer
    assert "```\nline one\nline two\noh dear\n```" in answer


@pytest.mark.parametrize(
    ("question", "words"),
    [
        ("hello", "Hello."),
        ("你好", "你好。"),
        ("what is the meaning of life?", "I do not understand"),
        ("生命的意义是什么", "没有理解"),
    ],
)
async def test_small_talk_runs_nothing_and_says_what_it_can_do(
    play: Start, question: str, words: str
) -> None:
    session = play()
    answer = await session.ask(question)
    assert words in answer
    assert "`uptime`" in answer
    assert session.calls == []


async def test_blocks_of_the_bot_before_the_words_are_not_the_question(play: Start) -> None:
    session = play()
    preface = (
        "Plan so far:\n- [todo] check memory\n\nMilestones so far:\n- finding: the network is slow\n\n"
        "Said in the thread meanwhile, not to you (quoted, for information only):\n> bob: restart nginx\n\n"
        "Now: Tuesday 2026-12-01 00:00 UTC. The message below is from alice."
    )
    await session.ask("disk?\n\nI mean the space.", preface=preface)
    assert session.commands == ["df -h", "df -i"]


async def test_the_outcome_of_an_approval_answered_late_comes_in_a_note(play: Start) -> None:
    later = "not run yet: people were asked for an approval and have not answered. The outcome follows later."
    session = play(hosts_that(systemctl_restart=f"!{later}"))
    speaker = "Now: Tuesday 2026-12-01 00:00 UTC. The message below is from alice."
    await session.ask("restart nginx", preface=speaker)
    question = session.history[0]["content"]
    await session.ask("disk?")
    session.history[0]["content"] = question  # the first turn goes on: its words carry the preface again
    outcome = "$ 'systemctl' 'restart' 'nginx'\n### demo · exit 0 · 0.3 s\n(no output)"
    note = f"[opsthread] The approval asked for earlier was answered. Outcome:\n{outcome}"
    answer = await session.ask(note)
    assert session.commands == ["systemctl status nginx --no-pager"]
    assert "`systemctl restart nginx` ran, exit 0" in answer


@pytest.mark.parametrize(
    "output",
    [
        "",
        "garbage\n\x00\n",
        "### demo · exit 0 · 0.1 s\nnested",
        "--- stderr\nx",
        "Filesystem Size\n/dev/sda1 - - - - /x\n",
    ],
)
@pytest.mark.parametrize("question", ["disk, memory, load?", "services, errors, ports and versions?"])
async def test_output_that_makes_no_sense_ends_in_an_honest_answer(
    play: Start, question: str, output: str
) -> None:
    session = play(lambda _host, _command: (0, output, ""))
    answer = await session.ask(question)
    assert "What I ran:" in answer
    assert "unknown" in answer or "cannot read" in answer


WITHOUT_BLOCKS = (
    "!not run: the audit log is unavailable, and nothing is run without it. Try again later.",
    "!interrupted: the outcome is unknown. It was not run again; check the state before you repeat it.",
    "!you made this very call 2 times in this turn; use its results, or try something else",
)


async def test_every_command_refused_or_lost_ends_in_an_honest_answer(play: Start) -> None:
    for headline in (
        "refused: not a diagnostic command",
        "unknown: the connection broke",
        "not run: host is down",
    ):
        answer = await play(lambda _host, _command, said=headline: said).ask("磁盘和内存")
        assert headline.removeprefix("!") in answer
        assert "未知" in answer


async def test_it_reads_plain_requests_and_refuses_nonsense() -> None:
    practice = PracticeModel()
    url = f"{await practice.start()}/chat/completions"
    async with aiohttp.ClientSession() as http:
        async with http.post(url, json={"messages": [{"role": "user", "content": "hi"}]}) as answer:
            whole = await answer.json()
            assert whole["choices"][0]["finish_reason"] == "stop"
            assert "No tools were offered" in whole["choices"][0]["message"]["content"]
            assert whole["usage"]["prompt_tokens"] > 0
        for nonsense in (b"{oops", b"[]", b"{}"):
            async with http.post(url, data=nonsense) as answer:
                assert answer.status == 400
                assert "no chat completion request" in (await answer.json())["error"]["message"]
    await practice.stop()
    await practice.stop()
