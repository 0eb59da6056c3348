"""Commands made to be slow to judge: each pattern and each small parser of the gate at its worst, 2,000 characters long."""

from __future__ import annotations

from collections.abc import Iterator

LONGEST = 2000


def worst_commands() -> Iterator[str]:
    """At most 2,000 characters each."""
    for text in _whole():
        yield text[:LONGEST]
    for head, unit, tail in _repeated():
        room = LONGEST - len(head) - len(tail)
        yield head + (unit * (room // len(unit) + 1))[:room] + tail


def _whole() -> Iterator[str]:
    for char in "a'\"\\/$`*?[](){}~#!&|;<>=% -":
        yield "ls " + char * LONGEST
        yield char * LONGEST
    nested = "ls"
    while len(nested) < LONGEST - 20:
        nested = (
            f"sudo sh -c {nested!r}"
            if "'" not in nested
            else 'sudo sh -c "' + nested.replace('"', '\\"') + '"'
        )
    yield nested
    yield "sudo " * 390 + "ls"
    yield "env A=b " * 240 + "ls"
    yield "nice " * 390 + "ls"
    yield "find / " + "-exec sh -c 'rm x' \\; " * 90
    yield " | ".join(["cat /var/log/*a*b*c*d*/*e*f*g*h*.log"] * 12)
    yield " | ".join(["cat /var/log/" + "[a-z]?" * 20 + "*.log"] * 12)
    yield " | ".join(["grep x /var/log/" + "/".join(f"{n}a*{n}b*{n}c*" for n in range(4)) + "*.log"] * 12)
    yield "cat " + " ".join(f"/var/log/s{n}*c{n}*r.log" for n in range(80))
    yield "cat " + " ".join(f"/var/log/p{n}?s*w{n}*d{n}*.log" for n in range(80))
    yield "cat " + "/var/log/" + "/".join("s*e*c*r*e*t*" for _ in range(4)) + "*.log"
    yield "ls " + " ".join("x" * 8 for _ in range(199))
    yield "grep '" + "аеорс" * 390 + "' /var/log/a"
    yield "grep '" + "ы連é" * 600 + "' /var/log/a"
    yield "psql -c 'select 1 from pg_locks" + ", pg_locks" * 180 + "'"


def _repeated() -> Iterator[tuple[str, str, str]]:
    for unit in (
        "$(",
        "`a ",
        "'a' ",
        '"a" ',
        "\\a",
        "a;",
        "a|",
        "a&&",
        "rm -rf $x ",
        "(a",
        "{a",
        "<(",
        "curl x | ",
        "sh -c ",
        "> /dev/",
        "authorized_keys ",
        "LD_A",
        "sudo -u a ",
        "kubectl exec ",
        "delete from t ",
        "update t set ",
    ):
        yield "", unit, ""
        yield "ls $x; ", unit, ""
    for program in (
        "sed -n",
        "sed",
        "sed -E",
        "awk",
        "jq",
        "grep",
        "grep -E",
        "psql -c",
        "mysql -e",
        "influx -execute",
        "ss",
        "redis-cli",
        "stat -c",
        "printf",
        "docker ps --format",
        "kubectl get pods -o",
        "curl",
        "dig",
        "find / -regex",
        "date -d",
        "journalctl -g",
        "bash -c",
        "ssh h",
        "su a -c",
        "eval",
    ):
        for unit in (
            "a",
            " ",
            "(",
            ")",
            "/",
            "\\/",
            "/a/,",
            "1,2",
            "p;",
            "s/a/b/",
            "[",
            "{",
            "{{.A}}",
            "%0",
            "%{a}",
            "for(",
            "a in ",
            "a*",
            "(a+)+",
            "{1,9}",
            ".a",
            '"a"',
            "a:",
            "a,",
            "select ",
            "from a ",
            "dst 1 ",
            "( ",
            "rm -rf / ",
            "A=",
            "ы",
        ):
            yield f"{program} '", unit, "'"
    for head in (
        "cat /var/log/",
        "cat /proc/",
        "cat /sys/class/",
        "cat /sys/fs/cgroup/",
        "cat /etc/nginx/",
        "curl http://localhost/",
        "curl http://localhost/?",
        "rm -rf /",
        "ip a show ",
        "env ",
        "chmod -R 1 /",
        "systemctl stop ",
        "systemctl ",
        "kill ",
        "iptables ",
        "docker rm ",
        "git push ",
        "parted ",
        "redis-cli ",
        "mv /",
        "nmcli ",
        "kubectl delete ",
        "docker compose ",
        "fdisk ",
        "ip ",
        "ip r ",
        "apt ",
        "aws ",
        "visudo ",
    ):
        for unit in (
            "a",
            "a/",
            "*a",
            "?",
            "[a]",
            "../",
            "-",
            "-a ",
            "a ",
            "a-b",
            "q=",
            "key=",
            ".log",
            "/a/b",
            "ssh ",
            " stop ",
            "a a=",
            "down ",
            "flush ",
            "1 ",
            "-f ",
            "rm -",
        ):
            yield head, unit, ""
