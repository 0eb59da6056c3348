"""Troubleshooting cases, from the bot's conclusion of work that ran commands: symptom, cause, evidence, fix, hosts.

A fix counts as done only when a command that changes something ended with exit status 0 before the conclusion;
whatever else is suggested is "proposed", so that no line of a log becomes next month's trusted fix.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from bot.memory.preferences.own_words import sentences
from bot.memory.records import Found, Heard
from bot.memory.shell import pipelines
from bot.memory.words import fold
from storage.records import MemoryKind, Role

LONGEST_PART = 220
MOST_EVIDENCE = 4
SHORTEST_CAUSE = 12
_SYMPTOM = re.compile(
    r"\b(?:why|errors?|slow\w{0,4}|fail\w{0,4}|down|full|stuck|crash\w{0,4}|time(?:s|d)? ?out|timeouts?|refus\w{1,4}|broken|unreachable|hang\w{0,4}|leak\w{0,4}|5[0-9]{2}|4[0-9]{2}|not (?:work|start|respond|reach)\w{0,4}"
    r"|(?:won't|doesn't|can't|cannot|isn't)|expired?|high|spik\w{1,4}|oom|killed|unhealthy|wrong|missing|empty|blank|stale|no data|pil(?:es?|ing) up|lag\w{0,6}|issue|problem|alert|restart\w{0,3} (?:loop|itself)|drop\w{0,4})\b"
    r"|为什么|为何|怎么回事|报错|错误|失败|慢|满|挂|崩|卡|超时|异常|连不上|拒绝|打不开|不通|无法|不了|告警|泄漏|飙高|很高|重启|过期|丢|延迟|问题|502|503|504|500",
    re.I,
)
_GOES_ON = re.compile(
    r"^(?:go on|continue|ok|yes|please do|do it|try|and now|again|check again|继续|好的?|可以|放行|执行|再|试)",
    re.I,
)
_CAUSE = re.compile(
    r"\b(?:root cause|caused by|causes?\b.{0,30}\b(?:is|was|:)|the cause|because|due to|the reason (?:is|was)|culprit|stems from|comes? from|came from|led to|triggered by|results? from|(?:was|is|were) blocking|blocked by|since the"
    r"|(?:that|this)(?:'s| is| was) (?:why|what)|which is why|(?:the|root of the) (?:problem|issue|trouble) (?:is|was|lies)|turn(?:s|ed) out|to blame|responsible for|as a result of|owing to|brought on by|(?:was|were|got) (?:killed|held|starved|exhausted) by|explains (?:the|why)|(?:saturat|exhaust|starv|hogg)\w{1,4})\b|\bcause\W{0,4}:"
    r"|根本原因|根因|原因|由于|因为|导致|引起|造成|是被|问题(?:就)?(?:出)?在|症结|罪魁|起因|根源|源于|归因|所致|结论[：:]|因(?![此而为子素果])[^，。]{2,20}"
    r"|被[^，。]{1,30}(?:占用|占满|占了|打满|耗尽|挡住|卡住|锁住|阻塞|杀掉|杀死|撑满|写满|拖慢|拖垮)",
    re.I,
)
_SO = re.compile(r",? (?:so|therefore|which is why|hence)\b|所以|因此", re.I)
_FIX = re.compile(
    r"\b(?:fix(?:ed)?|solution|resolve[ds]?|remedy|suggest|propose|recommend|i (?:have |just )?(?:restarted|reloaded|vacuumed|raised|lowered|increased|deleted|removed|cleared|renewed|allowed|opened|freed|killed|rolled|changed|set|updated|started|stopped|rotated|scaled|added|installed|enabled|disabled|cleaned|reverted|truncated|moved|extended|upgraded|restored|flushed)"
    r"|next step|should (?:be )?(?:restart|raise|lower|renew|free)\w{0,4}|after (?:restarting|the restart|a restart|reloading|clearing))\b"
    r"|\b(?:i've|i have|i) (?:\w{2,10} )?(?:restarted|reloaded|started|stopped|deleted|removed|cleared|renewed|killed|changed|set|added|reverted|rolled)\b|would (?:fix|solve|resolve|help|let it)\b|^(?:lower|raise|set|add|remove|restart|increase|decrease|drop|renew|move|change|run|use|free|delete|extend|start|stop|roll|scale|enable|disable|upgrade|exclude|open|reload|revert) |you (?:could|can|may|need to|should) (?:run|set|add|remove|drop|raise|lower|restart|use|start|delete|move|exclude|renew|increase)\b"
    r"|即可|就(?:能|可以|行)(?:了|恢复|解决|继续)?|请(?:执行|运行|重启|调整|修改)|改回|(?:改|调|设|换)(?:成|为|到|低|高|大|小)|我(?:已经?)?(?:把|删|停|改|重启|清|启动|回滚|装|加|换|升|扩|关|开|续|挂|恢复|调)"
    r"|建议|解决办法|解决方案|解决|修复|处理[：:]|已(?:将|用|经|把|重启|清理|调整|执行|恢复|放行|续期|扩容|回滚)|可以通过|重启.{0,40}(?:后|之后)|需要(?:调|改|扩|清|重启)|方案",
    re.I,
)
_NOTHING = re.compile(
    r"\b(?:could(?: not|n't) (?:find|determine|identify|reproduce|tell)|can(?:not|'t) (?:find|determine|identify|tell)|did(?: not|n't) find|found (?:no|nothing)|no (?:obvious |clear )?(?:cause|problem|issue|evidence)s?\b|(?:cause|reason) is (?:not |still )?(?:un)?(?:known|clear)"
    r"|not (?:yet )?(?:sure|clear|known)|unclear|everything (?:looks|is|seems) (?:normal|fine|ok|healthy|good)|all (?:looks )?(?:good|fine|normal|healthy)|inconclusive|need(?: to know)? more|nothing (?:wrong|unusual|suspicious)"
    r"|(?:have|has)(?: not|n't) (?:yet )?(?:been )?(?:verified|confirmed|proven|checked)|(?:un|not )(?:verified|confirmed|proven)|(?:might|may|could) be .{1,80}\bor\b)\b"
    r"|(?:没有?|未|无法)(?:能)?(?:找到|发现|确定|定位|查出|看出|判断)|看不出|查不出|说不清|不清楚|才能继续|原因(?:不明|未知|尚)|(?:还没有?|尚未|未经|没有?)(?:确认|证实|验证)|可能是[^。]{1,40}(?:也可能|或者)|不确定|一切正常|都正常|没有?(?:异常|问题)|暂(?:时|未)(?:没|无)?",
    re.I,
)
_STOPPED = re.compile(
    r"^\W{0,4}(?:stopped|i (?:was )?stopped|cancelled|aborted|interrupted|已停止|停止|已中断|被停止|已取消)\b|^\W{0,4}(?:已停止|已中断|停止了|被打断)|\bbefore i could finish\b",
    re.I,
)
_STILL = re.compile(
    r"\b(?:still (?:fail|down|slow|full|returns?|happen|broken|not|the same)\w{0,4}|did(?: not|n't) (?:help|work|fix)|no (?:effect|improvement)|without (?:effect|success)|persists?)\b"
    r"|仍然|仍旧|依然|依旧|还是(?:不|没|报|失败)|没有?(?:效果|用处|恢复|解决)|未(?:恢复|解决|生效)|无效",
    re.I,
)
_RESTATED = re.compile(
    r"\b(?:i remember|as (?:you|i) (?:told|said)|from (?:my )?memory|last time|previously noted|as before)\b|我记得|上次(?:的|是)?(?:原因|处理)?|根据记忆",
    re.I,
)
_CHANGES = re.compile(
    r"(?:systemctl|service|supervisorctl|rc-service) (?:\S{1,60} )?(?:restart|reload|start|stop|enable|disable|mask|unmask|daemon-reload|reset-failed|kill|try-restart|reload-or-restart)\b.*"
    r"|(?:apt|apt-get|yum|dnf|apk|pip3?|npm|snap|rpm|dpkg|gem) (?:-\S{1,12} ){0,4}(?:install|remove|upgrade|update|purge|add|del|autoremove|clean|autoclean|downgrade|-i|-U)\b.*"
    r"|(?:docker|podman)(?: compose)? (?:\S{1,20} )?(?:restart|start|stop|kill|rm|run|up|down|prune|update|pull|rmi|system prune)\b.*|docker-compose .*"
    r"|kubectl (?:-n \S{1,60} )?(?:apply|delete|rollout (?:restart|undo)|scale|patch|edit|set|create|replace|cordon|uncordon|drain|annotate|label)\b.*|helm (?:upgrade|rollback|install|uninstall)\b.*"
    r"|journalctl .{0,60}--(?:vacuum|rotate).*|(?:rm|mv|cp|truncate|tee|chmod|chown|ln|mkdir|touch|kill|killall|pkill|reboot|mount|umount|swapon|swapoff|sed -i|logrotate|certbot|ufw|iptables|nft|firewall-cmd"
    r"|useradd|usermod|sysctl -w|nginx -s|postqueue|postsuper|lvextend|resize2fs|xfs_growfs|growpart|fsck|ip route add|ip link set|hostnamectl set|timedatectl set|crontab|renice|fallocate|ansible-playbook|terraform apply|git pull|git checkout|git revert)\b.*"
    r"|redis-cli .{0,60}(?i:config set|flushall|flushdb|del|bgsave|client kill)\b.*|(?:psql|mysql|mariadb) .{0,200}(?i:alter |update |delete |insert |vacuum|reindex|pg_terminate_backend|pg_cancel_backend|set global|kill |drop |create |analyze |truncate ).*|rabbitmqctl (?:purge|stop|start|reset|set|delete).*"
)
_ONLY_READS = re.compile(  # of those above
    r"postqueue -[pj]\b.*|crontab (?:-u \S{1,40} )?-l.*|mount(?: -l)?(?: -t \S{1,20})?|swapon (?:-s|--show|--summary)\b.*|(?:ufw status|nft list|certbot certificates|fsck -[nN])\b.*"
    r"|iptables .{0,80}(?:-L|-S|-nL|-nvL|-vnL|--list)\b.*|firewall-cmd .{0,80}--(?:list|get|query|state|info).*|docker-compose .{0,80}\b(?:ps|logs|config|top|images|version)\b.*|kill -0 .*"
    r"|.{0,200}--(?:dry-run|simulate|check|syntax-check|list-tasks|list-hosts|help|version)\b(?!=none).*"
)
_TITLE = re.compile(
    r"^\W{0,6}(?:root cause|cause|evidence|fix|solution|proposed fix|symptom|根本原因|根因|原因|结论|证据|修复|解决办法|解决方案|处理建议|建议|方案|现象|处理)\W{0,6}[:：]\W{0,4}",
    re.I,
)
_SENTENCE = re.compile(r"(?<=[.!?])\s+|(?<=[。！？；])|\n+")


@dataclass(slots=True)
class _Problem:
    symptom: str
    commands: list[Heard] = field(default_factory=list)
    since: int = 0  # how many commands stood at the last question


class Cases:
    """Follows a conversation, and gives a case at each conclusion; a later one of the same problem takes its place."""

    def __init__(self) -> None:
        self._problem: _Problem | None = None

    def hear(self, heard: Heard, number: int) -> Found | None:
        """The next message, in order; a case when it concludes."""
        if heard.role is Role.USER:
            self._question(heard)
        elif heard.role is Role.TOOL and self._problem and heard.command:
            self._problem.commands.append(heard)
        elif heard.role is Role.ASSISTANT and self._problem and self._problem.commands:
            return _case(self._problem, heard.text[:8_000], number)
        return None

    def _question(self, heard: Heard) -> None:
        own = " ".join(sentence.text for sentence in sentences(heard.text))[:LONGEST_PART].strip()
        new = bool(_SYMPTOM.search(own)) and len(own) > 6 and not _GOES_ON.match(own)
        if self._problem is None or new or (not self._problem.commands and own):
            self._problem = _Problem(own)


def _case(problem: _Problem, answer: str, number: int) -> Found | None:
    if not problem.symptom or _STOPPED.search(answer[:200]) or _RESTATED.search(answer) or _asks_back(answer):
        return None
    changed = [c for c in problem.commands if c.exit_status == 0 and changes(c.command)]
    said = [part for line in _SENTENCE.split(answer) if len(part := " ".join(line.strip().split())) > 3]
    plain = [part for part in said if not part.endswith(("?", "？"))]
    cause = next((p for p in plain if _CAUSE.search(p) and not _NOTHING.search(p)), "")
    fix = next((p for p in plain if _FIX.search(p) and p != cause), "")
    if not cause and fix:
        cause = next((p for p in plain if p != fix and _SO.search(p) and not _NOTHING.search(p)), "")
    if not cause and fix and changed and _SYMPTOM.search(problem.symptom):
        cause = _said_before(fix, plain)
    if not cause or (not fix and any(_NOTHING.search(p) for p in plain)):
        return None
    if not fix and _FIX.search(cause):
        fix = cause
    hosts = ", ".join(dict.fromkeys(c.host for c in problem.commands if c.host)) or "no host"
    status = "fixed" if changed and not _STILL.search(answer) else "proposed"
    evidence = "; ".join(
        dict.fromkeys(
            f"{_shown(c.command)} on {c.host}" for c in reversed(problem.commands) if c.exit_status == 0
        )
    )
    cause, fix = _TITLE.sub("", cause)[:LONGEST_PART], _TITLE.sub("", fix)[:LONGEST_PART]
    parts = [f"symptom: {problem.symptom[:120]}", f"cause: {cause.strip(' .。*')}"]
    parts += [f"fix ({status}): {(fix or 'none named').strip(' .。*')}"]
    parts += [f"evidence: {'; '.join(evidence.split('; ')[:MOST_EVIDENCE])}"] if evidence else []
    return Found(
        MemoryKind.TROUBLESHOOTING_CASE,
        hosts[:120],
        fold(problem.symptom)[:100].rstrip("?？!。. "),
        f"{status}: {cause}"[:200],
        (f"Case on {hosts}: " + "; ".join(parts))[:599].rstrip(".") + ".",
        problem.commands[-1].host,
        number,
    )


def _said_before(fix: str, plain: list[str]) -> str:
    """What a conclusion opens with, right before the fix: what is the matter, in words that name it no cause."""
    at = plain.index(fix)
    return plain[0] if at == 1 and len(plain[0]) >= SHORTEST_CAUSE and not _NOTHING.search(plain[0]) else ""


def changes(command: str) -> bool:
    """Whether a command is one of a closed list that changes something."""
    chain = pipelines(command)
    if chain is None:
        return bool(_CHANGES.match(command.replace("'", "").removeprefix("sudo -n ")[:500]))
    return any(_CHANGES.fullmatch(each.line) and not _ONLY_READS.fullmatch(each.line) for each in chain)


def _asks_back(answer: str) -> bool:
    last = answer.rstrip(" *_`)\n")[-1:]
    return last in ("?", "？") and not _FIX.search(answer)


def _shown(command: str) -> str:
    return " ".join(command.replace("'", "").split())[:80]
