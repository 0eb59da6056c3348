"""The tool list_hosts: the hosts this person may use here, by name, glob or label."""

from __future__ import annotations

from fnmatch import fnmatchcase

from pydantic import BaseModel, Field

from bot.outside import line
from bot.ssh.inventory import Host
from bot.tools.authority import Authority
from bot.tools.toolbox import Outcome, Result
from storage.records import ToolCall

LISTED = 100


class ListHostsArguments(BaseModel):
    filter: str = Field("", description="part of a name, a glob such as web-*, or label=value; empty: all")


class ListHosts:
    """See the module's docstring."""

    name = "list_hosts"
    description = "List the hosts you may use for this person, with their labels."
    Arguments = ListHostsArguments

    def __init__(self, authority: Authority) -> None:
        self._authority = authority

    def hosts(self, _arguments: ListHostsArguments) -> tuple[str, ...]:
        return ()

    async def run(self, _call: ToolCall, arguments: ListHostsArguments) -> Outcome:
        hosts = await self._authority.hosts()
        if not hosts:
            return Result("this person may use no host from this channel")
        wanted = arguments.filter.strip()
        found = [host for host in hosts if _fits(host, wanted)]
        if not found:
            return Result(
                f'no host fits "{line(wanted, 80)}"; there are {len(hosts)} hosts, filter="" lists them'
            )
        lines = [host_line(host) for host in found[:LISTED]]
        if len(found) > LISTED:
            lines.append(f"… {len(found) - LISTED} more; narrow the filter")
        return Result("\n".join(lines))


def _fits(host: Host, wanted: str) -> bool:
    if not wanted:
        return True
    key, equals, value = wanted.partition("=")
    if equals:
        return any(k == key and fnmatchcase(v, value) for k, v in host.labels)
    return wanted.lower() in host.name.lower() or fnmatchcase(host.name, wanted)


def host_line(host: Host) -> str:
    """`- web-1 role=web env=prod`"""
    labels = " ".join(f"{key}={value}" for key, value in host.labels)
    return line(f"- {host.name} {labels}")
