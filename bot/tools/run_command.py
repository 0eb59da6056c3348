"""The tool run_command: one shell line on one or several hosts, judged, perhaps approved, run, reported.

Safe to run again for the same call id (a resumed turn does): what was claimed is never sent twice, what was
asked is not asked again, what was approved is judged again before it runs.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import assert_never

from pydantic import BaseModel, Field, field_validator

from bot.access import approvers_of, is_one_person, unknown_host_message
from bot.errors import AccessDenied, HostError, Refused
from bot.journal import Ledger, Question, Wanted
from bot.policy.judge import judge
from bot.policy.rules import Rules
from bot.ssh.inventory import AccessRule, Host
from bot.tools.authority import Authority
from bot.tools.execution import Executor, side_by_side
from bot.tools.questions import Place, question, still_bound
from bot.tools.report import Part, ran, report
from bot.tools.toolbox import Outcome, Pending, Result
from storage.records import Approval, ApprovalState, Command, CommandState, Decision, ToolCall, Verdict

WITHHELD = "(withheld: the person who asks may not use this host any more)"
NO_SECRETS = (
    "the command holds a secret, and secrets do not pass through here: they would stand in the thread, the log "
    "and the process list. Put it into a file on the host that only the account can read, and let the command "
    "read it from there (--password-file, < file, a config file)"
)
_REDACTED = re.compile(r"\[redacted:[^\]\s]+\]")
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


@dataclass(frozen=True, slots=True)
class _Placed:
    """A judged command and where it would run."""

    judged: _Judged
    place: Place


@dataclass(frozen=True, slots=True)
class _Group:
    """What hosts must have in common to stand on one card."""

    approvers: tuple[str, ...]
    self_approval: bool
    needs: int
    run: str
    limit_s: int


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
        ledger: Ledger,
        approval_s: int,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._authority = authority
        self._rules = rules
        self._executor = executor
        self._ledger = ledger
        self._approval_s = approval_s
        self._now = now

    def hosts(self, arguments: RunCommandArguments) -> tuple[str, ...]:
        return tuple(arguments.hosts)

    async def run(self, call: ToolCall, arguments: RunCommandArguments) -> Outcome:
        claimed, asked = await self._ledger.found(call.id)
        begun = {*claimed, *(bound.name for approval in asked for bound in approval.hosts)}
        hosts = await self._resolve(arguments.hosts, begun=begun)
        judged = [
            _Judged(host, self._judge(arguments.command, host, many=len(hosts) > MANY_HOSTS))
            for host in hosts
        ]
        fresh = [j for j in judged if j.host.name not in begun]
        work = [self._known(command, asked, hosts) for command in claimed.values()]
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
        order = {name: i for i, name in enumerate(arguments.hosts)}
        parts.sort(key=lambda part: order.get(part.host, len(order)))
        return Result(report(_shown(judged, arguments.command), parts))

    async def _resolve(self, names: Sequence[str], *, begun: Collection[str]) -> list[Host]:
        """The hosts by name. Raises AccessDenied that names what may be used instead.

        begun: hosts on which an earlier try of this call did something: they are left out when the person
        may not use them any more, so that what was done is still told.
        """
        allowed = await self._authority.hosts()
        by_name = {host.name: host for host in allowed}
        for name in names:
            if name not in by_name and name not in begun:
                raise AccessDenied(unknown_host_message(name, allowed))
        return [by_name[name] for name in dict.fromkeys(names) if name in by_name]

    def _judge(self, command: str, host: Host, *, many: bool = False) -> Verdict:
        verdict = self._without_secrets(command, host)
        if many and verdict.decision is Decision.ALLOW:
            return replace(
                verdict, decision=Decision.ASK, reason=f"it would run on more than {MANY_HOSTS} hosts"
            )
        return verdict

    def _without_secrets(self, command: str, host: Host) -> Verdict:
        verdict = judge(
            command,
            self._rules(),
            host_name=host.name,
            sudo_allowed=host.sudo,
            targets=self._authority.inventory().targets,
        )
        # Taken out of what the model said, or found only in the text that would run (`pass"wor"d=…`).
        found = _REDACTED.search(command) or self._ledger.secrets(verdict.run or "")
        return Verdict(Decision.DENY, NO_SECRETS, None, verdict.parsed) if found else verdict

    def _limit(self, arguments: RunCommandArguments, host: Host) -> int:
        return min(arguments.timeout_s or host.timeout_s, host.max_timeout_s)

    async def _known(self, command: Command, asked: Sequence[Approval], hosts: Sequence[Host]) -> list[Part]:
        """A command that an earlier try of this call claimed."""
        if command.state is CommandState.RUNNING:
            approval = next((a for a in asked if a.id == command.approval_id), None)
            host = self._authority.inventory().host(command.host)
            part = await self._executor.interrupted(command, host, approval)
        else:
            output = await self._ledger.output(command.id)
            part = ran(command, output.stdout, output.stderr)
        if not any(host.name == command.host for host in hosts):
            return [replace(part, stdout="", stderr=WITHHELD)]
        return [part]

    async def _allowed(self, call: ToolCall, arguments: RunCommandArguments, j: _Judged) -> list[Part]:
        assert j.verdict.run is not None
        wanted = Wanted(
            call_id=call.id,
            host=j.host.name,
            where=f"{j.host.user}@{j.host.address}:{j.host.port}",
            fingerprint="",
            run=j.verdict.run,
            reason=j.verdict.reason,
            purpose=arguments.purpose,
            policy=self._rules().digest,
            limit_s=self._limit(arguments, j.host),
        )
        return [await self._executor.read(j.host, wanted)]

    async def _denied(self, j: _Judged) -> list[Part]:
        await self._ledger.refused(host=j.host.name, run=j.verdict.run or "", reason=j.verdict.reason)
        return [Part(j.host.name, f"refused: {j.verdict.reason}")]

    async def _ask(
        self, call: ToolCall, arguments: RunCommandArguments, judged: Sequence[_Judged]
    ) -> tuple[list[Approval], list[Part]]:
        """Open approvals, one for each set of hosts with the same approvers; or say why it cannot be asked."""
        groups: dict[_Group, list[_Placed]] = {}
        refusals: list[Part] = []
        earlier = await self._ledger.asked() if judged else []
        for j in judged:
            rule = await self._authority.rule(j.host)
            refusal = _unaskable(j, rule, earlier)
            if refusal is None:
                try:
                    placed = _Placed(j, await self._executor.place(j.host))
                except HostError as error:
                    refusal = str(error)
            if refusal is not None or rule is None or j.verdict.run is None:
                said = refusal or "no access"
                run = j.verdict.run or arguments.command
                await self._ledger.refused(host=j.host.name, run=run, reason=said)
                refusals.append(Part(j.host.name, f"refused: {said}"))
                continue
            group = _Group(
                approvers=rule.approvers,
                self_approval=rule.self_approval,
                needs=_needs(j.verdict, rule),
                run=j.verdict.run,
                limit_s=self._limit(arguments, j.host),
            )
            groups.setdefault(group, []).append(placed)
        opened: list[Approval] = []
        for group, members in groups.items():
            verdict = members[0].judged.verdict
            wanted = question(
                turn=self._ledger.turn,
                call_id=call.id,
                places=[member.place for member in members],
                run=group.run,
                limit_s=group.limit_s,
                reason=verdict.reason,
                purpose=arguments.purpose,
                policy=self._rules().digest,
                danger=verdict.danger,
                needs=group.needs,
                now=self._now(),
                open_s=self._approval_s,
            )
            try:
                opened.append(await self._ledger.ask(Question(approval=wanted, approvers=group.approvers)))
            except Refused as error:
                refusals += [Part(member.judged.host.name, f"refused: {error}") for member in members]
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
                by_name = {host.name: host for host in hosts}
                try:
                    return await self._executor.approved(approval, by_name, policy=self._rules().digest)
                except Refused as error:
                    return [Part(name, f"not run: {error}") for name in names]
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
        now: list[Place] = []
        for bound in approval.hosts:
            host = by_name.get(bound.name)
            if host is None:
                return f"host {bound.name} may not be used any more"
            verdict = self._judge(arguments.command, host, many=len(hosts) > MANY_HOSTS)
            if verdict.decision is Decision.DENY:
                return f"the rules refuse it now: {verdict.reason}"
            if verdict.run != approval.run:
                return "the rules would run another text now than the one approved; ask again"
            rule = await self._authority.rule(host)
            if rule is None or _needs(verdict, rule) > approval.needs:
                return "more people must approve it by the rules of now; ask again"
            try:
                now.append(await self._executor.place(host))
            except HostError as error:
                return str(error)
        if not still_bound(approval, now):
            return "the hosts have changed since it was approved; ask again"
        return None


def _all_claimed(approval: Approval, claimed: dict[str, Command]) -> bool:
    return all(host.name in claimed for host in approval.hosts)


def _needs(verdict: Verdict, rule: AccessRule) -> int:
    """How many different people must say yes."""
    return rule.danger_approvals if verdict.danger else 1


def _unaskable(j: _Judged, rule: AccessRule | None, earlier: Sequence[Approval]) -> str | None:
    """Why no approval can be asked for; None: it can. earlier: what this turn asked for before."""
    if j.verdict.run is None:
        return j.verdict.reason
    approvers = approvers_of(rule)
    if rule is None or not approvers:
        return (
            f"it needs an approval ({j.verdict.reason}), and no access rule names approvers for {j.host.name}"
        )
    if _needs(j.verdict, rule) > 1 and len(approvers) == 1 and is_one_person(approvers[0]):
        return (
            f"two people must approve it ({j.verdict.danger}), and the access rule of {j.host.name} names only"
            f" {approvers[0]}; add an approver, or set danger_approvals: 1 there"
        )
    for approval in earlier:
        same = approval.run == j.verdict.run and any(host.name == j.host.name for host in approval.hosts)
        if same and approval.state is ApprovalState.DENIED:
            return f"{approval.decided_by} denied it in this turn; it is not asked again"
    return None


def _shown(judged: Sequence[_Judged], command: str) -> str:
    runs = {j.verdict.run for j in judged}
    return next(iter(runs)) or command if len(runs) == 1 else command
