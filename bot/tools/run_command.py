"""The tool run_command: one shell line on one or several hosts, judged, perhaps approved, run, reported.

Safe to run again for the same call id (a resumed turn does): what was claimed is never sent twice, what was
asked is not asked again, what was approved is judged again before it runs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import assert_never

from pydantic import BaseModel, Field, field_validator

from bot.access import approvers_of, unknown_host_message
from bot.errors import AccessDenied, HostError, Refused
from bot.journal import Journal
from bot.journal.journal import Question
from bot.policy.judge import judge
from bot.policy.rules import Rules
from bot.ssh.inventory import Host
from bot.tools.authority import Authority
from bot.tools.execution import Executor, side_by_side
from bot.tools.questions import question, still_bound
from bot.tools.report import Part, ran, report
from bot.tools.toolbox import Outcome, Pending, Result
from storage.records import Approval, ApprovalState, Command, CommandState, Decision, ToolCall, Verdict

MANY_HOSTS = 20  # a read on more hosts than this asks first


class RunCommandArguments(BaseModel):
    hosts: list[str] = Field(min_length=1, description="names of hosts, as listed")
    command: str = Field(min_length=1, description="one shell line; pipes of diagnostic programs are fine")
    purpose: str = Field("", description="why, in a few words, for the people who watch")
    timeout_s: int | None = Field(
        None, ge=1, description="seconds it may take; the host's default if left out"
    )

    @field_validator("hosts", mode="before")
    @classmethod
    def _one_or_many(cls, value: object) -> object:
        return [name.strip() for name in value.split(",")] if isinstance(value, str) else value


@dataclass(frozen=True, slots=True)
class _Judged:
    host: Host
    verdict: Verdict


class RunCommand:
    """See the module's docstring."""

    name = "run_command"
    description = (
        "Run one shell line on hosts over SSH. Reading commands run at once; anything else waits for a person's "
        "approval. Returns exit status and output of each host."
    )
    Arguments = RunCommandArguments

    def __init__(
        self,
        *,
        authority: Authority,
        rules: Callable[[], Rules],
        executor: Executor,
        journal: Journal,
        approval_s: int,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._authority = authority
        self._rules = rules
        self._executor = executor
        self._journal = journal
        self._approval_s = approval_s
        self._now = now

    def hosts(self, arguments: RunCommandArguments) -> tuple[str, ...]:
        return tuple(arguments.hosts)

    async def run(self, call: ToolCall, arguments: RunCommandArguments) -> Outcome:
        hosts = await self._resolve(arguments.hosts)
        claimed, asked = await self._journal.found(call.id)
        judged = [
            _Judged(host, self._judge(arguments.command, host, many=len(hosts) > MANY_HOSTS))
            for host in hosts
        ]
        fresh = [j for j in judged if j.host.name not in claimed and not _covering(asked, j.host.name)]
        work = [
            self._known(command, asked)
            for command in claimed.values()
            if command.host in {h.name for h in hosts}
        ]
        work += [self._allowed(call, arguments, j) for j in fresh if j.verdict.decision is Decision.ALLOW]
        work += [self._denied(j) for j in fresh if j.verdict.decision is Decision.DENY]
        parts: list[Part] = [part for parts in await side_by_side(work) for part in parts]
        new, refusals = await self._ask(
            call, arguments, [j for j in fresh if j.verdict.decision is Decision.ASK]
        )
        parts += refusals
        approvals = [a for a in asked if not _all_claimed(a, claimed)] + new
        waiting = [a.id for a in approvals if a.state is ApprovalState.OPEN]
        for approval in approvals:
            if approval.state is not ApprovalState.OPEN:
                parts += await self._decided(approval, arguments, hosts)
        if waiting:
            return Pending(tuple(waiting))
        order = {host.name: i for i, host in enumerate(hosts)}
        parts.sort(key=lambda part: order.get(part.host, len(order)))
        return Result(report(_shown(judged, arguments.command), parts))

    async def _resolve(self, names: Sequence[str]) -> list[Host]:
        """The hosts by name; raises AccessDenied that names what may be used."""
        allowed = await self._authority.hosts()
        by_name = {host.name: host for host in allowed}
        for name in names:
            if name not in by_name:
                raise AccessDenied(unknown_host_message(name, allowed))
        return [by_name[name] for name in dict.fromkeys(names)]

    def _judge(self, command: str, host: Host, *, many: bool = False) -> Verdict:
        verdict = judge(
            command,
            self._rules(),
            host_name=host.name,
            sudo_allowed=host.sudo,
            targets=self._authority.inventory().targets,
        )
        if many and verdict.decision is Decision.ALLOW:
            return Verdict(
                Decision.ASK, f"it would run on more than {MANY_HOSTS} hosts", verdict.run, verdict.parsed
            )
        return verdict

    def _limit(self, arguments: RunCommandArguments, host: Host) -> int:
        return min(arguments.timeout_s or host.timeout_s, host.max_timeout_s)

    async def _known(self, command: Command, asked: Sequence[Approval]) -> list[Part]:
        """A command that an earlier try of this call claimed."""
        if command.state is CommandState.RUNNING:
            approval = next((a for a in asked if a.id == command.approval_id), None)
            host = self._authority.inventory().host(command.host)
            return [await self._executor.interrupted(command, host, approval)]
        return [ran(command, await self._journal.output(command.id))]

    async def _allowed(self, call: ToolCall, arguments: RunCommandArguments, j: _Judged) -> list[Part]:
        assert j.verdict.run is not None
        return [
            await self._executor.read(
                call_id=call.id,
                host=j.host,
                run=j.verdict.run,
                reason=j.verdict.reason,
                purpose=arguments.purpose,
                limit_s=self._limit(arguments, j.host),
            )
        ]

    async def _denied(self, j: _Judged) -> list[Part]:
        await self._journal.refused(host=j.host.name, run=j.verdict.run or "", reason=j.verdict.reason)
        return [Part(j.host.name, f"refused: {j.verdict.reason}")]

    async def _ask(
        self, call: ToolCall, arguments: RunCommandArguments, judged: Sequence[_Judged]
    ) -> tuple[list[Approval], list[Part]]:
        """Open approvals, one for each set of hosts with the same approvers; or say why it cannot be asked."""
        groups: dict[tuple[tuple[str, ...], str, bool, int], list[tuple[_Judged, str]]] = {}
        refusals: list[Part] = []
        earlier = await self._journal.approvals() if judged else []
        for j in judged:
            rule = await self._authority.rule(j.host)
            refusal = _unaskable(j, approvers_of(rule), earlier, turn_id=self._journal.turn.id)
            try:
                fingerprint = "" if refusal else await self._executor.fingerprint(j.host)
            except HostError as error:
                refusal, fingerprint = str(error), ""
            if refusal or rule is None:
                await self._journal.refused(
                    host=j.host.name, run=j.verdict.run or arguments.command, reason=refusal or "no access"
                )
                refusals.append(Part(j.host.name, f"refused: {refusal}"))
                continue
            assert j.verdict.run is not None
            key = (rule.approvers, j.verdict.run, rule.self_approval, self._limit(arguments, j.host))
            groups.setdefault(key, []).append((j, fingerprint))
        opened: list[Approval] = []
        for (approvers, run, _, limit_s), members in groups.items():
            wanted = question(
                turn=self._journal.turn,
                call_id=call.id,
                hosts=[(j.host, fingerprint) for j, fingerprint in members],
                run=run,
                limit_s=limit_s,
                reason=members[0][0].verdict.reason,
                purpose=arguments.purpose,
                now=self._now(),
                open_s=self._approval_s,
            )
            try:
                opened.append(await self._journal.ask(Question(approval=wanted, approvers=approvers)))
            except Refused as error:
                refusals += [Part(j.host.name, f"refused: {error}") for j, _ in members]
        return opened, refusals

    async def _decided(
        self, approval: Approval, arguments: RunCommandArguments, hosts: Sequence[Host]
    ) -> list[Part]:
        """What follows from an answered approval: run it, or say what was decided."""
        names = [host.name for host in approval.hosts]
        match approval.state:
            case ApprovalState.APPROVED:
                refusal = await self._recheck(approval, arguments, hosts)
                if refusal:
                    return [Part(name, f"refused: {refusal}") for name in names]
                return await self._executor.approved(approval, {host.name: host for host in hosts})
            case ApprovalState.DENIED:
                said = f"denied by {approval.decided_by}; do not ask for it again in this turn"
            case ApprovalState.EXPIRED:
                said = "not run: nobody answered the approval in time"
            case ApprovalState.REVOKED:
                said = "not run: the request was withdrawn"
            case ApprovalState.USED:
                said = "not run: the approval was used up before the command was sent"
            case ApprovalState.OPEN:
                said = "not run yet: the approval is still open"
            case _ as never:
                assert_never(never)
        return [Part(name, said) for name in names]

    async def _recheck(
        self, approval: Approval, arguments: RunCommandArguments, hosts: Sequence[Host]
    ) -> str | None:
        """Judge an approved command again with the rules, hosts and keys of now. None: it may run."""
        by_name = {host.name: host for host in hosts}
        now: list[tuple[Host, str]] = []
        for bound in approval.hosts:
            host = by_name.get(bound.name)
            if host is None:
                return f"host {bound.name} may not be used any more"
            verdict = self._judge(arguments.command, host, many=len(hosts) > MANY_HOSTS)
            if verdict.decision is Decision.DENY:
                return f"the rules refuse it now: {verdict.reason}"
            if verdict.run != approval.run:
                return "the rules would run another text now than the one approved; ask again"
            try:
                now.append((host, await self._executor.fingerprint(host)))
            except HostError as error:
                return str(error)
        if not still_bound(approval, now):
            return "the hosts have changed since it was approved; ask again"
        return None


def _covering(approvals: Sequence[Approval], host: str) -> bool:
    return any(host == bound.name for approval in approvals for bound in approval.hosts)


def _all_claimed(approval: Approval, claimed: dict[str, Command]) -> bool:
    return all(host.name in claimed for host in approval.hosts)


def _unaskable(
    j: _Judged, approvers: tuple[str, ...], earlier: Sequence[Approval], *, turn_id: int
) -> str | None:
    """Why no approval can be asked for; None: it can."""
    if j.verdict.run is None:
        return j.verdict.reason
    if not approvers:
        return (
            f"it needs an approval ({j.verdict.reason}), and no access rule names approvers for {j.host.name}"
        )
    for approval in earlier:
        same = approval.run == j.verdict.run and any(host.name == j.host.name for host in approval.hosts)
        if same and approval.turn_id == turn_id and approval.state is ApprovalState.DENIED:
            return f"{approval.decided_by} denied it in this turn; it is not asked again"
    return None


def _shown(judged: Sequence[_Judged], command: str) -> str:
    runs = {j.verdict.run for j in judged}
    return next(iter(runs)) or command if len(runs) == 1 else command
