"""What listens on a host, and how it is connected: ports with their programs, addresses, gateway, name servers."""

from __future__ import annotations

import re
from collections.abc import Iterator

from bot.memory.facts.reading import OF_FILE, Reading, Source, by_line, environment, source

MOST_PORTS = 40
_ADDRESS = r"(?:[0-9]{1,3}(?:\.[0-9]{1,3}){3}|[0-9a-f:]{2,45})"
_PROGRAM = r"[A-Za-z][\w.+-]{0,40}"


def _listening(lines: list[str], _: re.Match[str]) -> Iterator[Reading]:
    """`ss -ltnp` and `netstat -ltnp`. Without root no program is shown, and then nothing is learnt."""
    ports: dict[str, set[str]] = {}
    for line in lines:
        if "LISTEN" not in line and not line.startswith(("udp", "UNCONN")):
            continue
        hit = re.match(
            rf".{{0,80}}?(?:\s|^)(?:\[?[0-9a-f:.*%\w]{{1,60}}\]?|\*):([0-9]{{1,5}})\s{{1,60}}\S{{1,60}}\s.{{0,80}}?"
            rf"(?:users:\(\(\"({_PROGRAM})[\"(:]|\b[0-9]{{1,8}}/({_PROGRAM}))",
            line,
        )
        if hit:
            ports.setdefault(hit[1], set()).add(hit[2] or hit[3])
    for port, programs in list(ports.items())[:MOST_PORTS]:
        if len(programs) == 1:
            program = next(iter(programs))
            yield environment(f"port {port}", program, f"{program} listens on port {port}")


def _addresses(lines: list[str], _: re.Match[str]) -> Iterator[Reading]:
    interface = ""
    for line in lines:
        if hit := re.match(r"[0-9]{1,5}: ([\w.-]{1,20})(?:@[\w.-]{1,20})?: <", line):
            interface = hit[1]
        elif interface and (
            hit := re.match(rf" {{4}}inet ({_ADDRESS}/[0-9]{{1,3}}) .{{0,80}}scope global", line)
        ):
            if not interface.startswith(("veth", "docker", "br-", "cni", "flannel", "cali")):
                yield environment(f"address of {interface}", hit[1], f"{interface} has the address {hit[1]}")
            interface = ""
        elif hit := re.match(
            rf"([\w.-]{{1,20}})(?:@[\w.-]{{1,20}})? {{1,20}}UP {{1,20}}({_ADDRESS}/[0-9]{{1,3}})(?: |$)", line
        ):
            yield environment(f"address of {hit[1]}", hit[2], f"{hit[1]} has the address {hit[2]}")


def _route(lines: list[str], _: re.Match[str]) -> Iterator[Reading]:
    for line in lines:
        hit = re.match(rf"default via ({_ADDRESS}) dev ([\w.-]{{1,20}})", line) or re.match(
            rf"0\.0\.0\.0 {{1,20}}({_ADDRESS}) {{1,20}}0\.0\.0\.0 {{1,20}}UG .{{0,60}} ([\w.-]{{1,20}})$",
            line,
        )
        if hit:
            yield environment("default gateway", hit[1], f"the default gateway is {hit[1]} on {hit[2]}")
            return


def _resolvers(lines: list[str], _: re.Match[str]) -> Iterator[Reading]:
    servers = [hit[1] for line in lines if (hit := re.fullmatch(rf"nameserver ({_ADDRESS})", line))]
    if servers:
        value = ", ".join(servers[:4])
        yield environment("name servers", value, f"the name servers are {value}")


NETWORK: tuple[Source, ...] = (
    source(r"ss -[a-z46]{1,8}(?: -[a-z46]{1,8}| sport .{1,40}| state listening){0,4}", _listening),
    source(r"netstat -[a-z46]{1,8}(?: -[a-z46]{1,8}){0,3}", _listening),
    source(r"ip (?:-4 |-br |-brief |-o |-c |-color ){0,3}(?:a|addr|address)(?: show| ls| list)?(?: \S{1,20}){0,3}", _addresses),
    source(r"ip (?:-4 )?(?:r|route|ro)(?: show| list| ls)?(?: default)?|route -n|netstat -rn", _route),
    source(rf"{OF_FILE} /etc/resolv\.conf", _resolvers),
    source(r"hostname (?:-f|--fqdn)", by_line(("full host name", r"([a-z0-9-]{1,63}(?:\.[a-z0-9-]{1,63}){1,8})$", "")), bare=True),
)  # fmt: skip
