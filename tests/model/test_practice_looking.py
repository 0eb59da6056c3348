"""The practice model over HTTP: chooses commands by question, reads what hosts print, concludes with figures."""

from __future__ import annotations

import pytest

from tests.model.play import Start
from tests.model.shells import DF, DF_FULL, NO_SYSTEMD, USUAL, hosts_that, missing


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
