"""The shell text of an approved change: started once for its key, kept on the host until collected. Pure.

On the host, in a private folder of the account: `mkdir` of the key's folder is the once-lock; a runner in its
own session writes pid, output and status there, so it lives through a lost channel, our SIGTERM and kill -9.
What we run to start and to follow it goes through the wrapper of a read and may die at any time.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import Literal

from bot.ssh.output import KEEP_BYTES, joined
from bot.ssh.wrapper import KILL_AFTER_S, quote

HALF = KEEP_BYTES // 2  # bytes of head, and of tail, that the host keeps of each stream
_NUMBER = re.compile(r"-?[0-9]{1,18}")
_LONGEST_LINE = 4_096  # the follower says nothing longer; a host that does is not heard
KEPT_DAYS = 7  # what nobody collected, and the empty tombs of what was

State = Literal[
    "following",  # nothing final was said yet
    "refused",  # the folder could not be made; nothing ran
    "none",  # no trace of this key: it never started there
    "done",
    "collected",  # done, and its output was fetched before
    "rebooted",
    "died",  # its runner is gone and left no status
    "unborn",  # claimed, but it did not begin
]
STATES: dict[str, State] = {
    "done": "done", "collected": "collected", "rebooted": "rebooted", "died": "died", "unborn": "unborn"
}  # fmt: skip

_FOLDER = """umask 077; b=/var/tmp; [ -d $b ] && [ -w $b ] || b=/tmp
d=$b/.opsthread-$(id -u); k=$d/%(key)s
"""
# Somebody else may have made the folder first, or a link of that name: then nothing is run.
_LAUNCH = """mkdir -m 700 "$d" 2>/dev/null
if [ -L "$d" ] || [ ! -d "$d" ] || [ ! -O "$d" ]; then printf 'refused %%s\\n' "$d is not a folder of this account"; exit; fi
chmod 700 "$d"
find "$d" -mindepth 1 -maxdepth 1 -type d -mtime +%(days)s -exec rm -rf {} + 2>/dev/null
if mkdir "$k" 2>/dev/null; then setsid /bin/sh -c %(runner)s opsthread-change "$k" </dev/null >/dev/null 2>&1 &
elif [ ! -d "$k" ]; then printf 'refused %%s\\n' "$k cannot be made; is the disk full?"; exit; fi
"""
# The readers outlive the command: a daemon it started keeps a pipe that is drained, so it neither fills the
# disk nor dies of SIGPIPE. dd with bs=1 is exact and writes at once, where head would hold some back; the
# 128,000 bytes it copies so take a tenth of a second.
_RUNNER = """cd "$1" || exit
t0=$(date +%%s); printf '%%s %%s %%s\\n' $$ "$t0" "$(cat /proc/sys/kernel/random/boot_id 2>/dev/null)" >s.tmp
mv s.tmp started || exit
rd() { dd bs=1 count=%(half)s >$1 2>/dev/null
{ tee /dev/fd/5 2>/dev/null | tail -c %(half)s >$1.t; } 5>&1 | wc -c >$1.m; : >$1.e; }
mkfifo o.p e.p || exit
rd out <o.p & rd err <e.p &
cd /; timeout -k %(kill)s %(limit)s /bin/sh -c %(run)s </dev/null >"$1/o.p" 2>"$1/e.p"; r=$?
cd "$1" || exit; rm -f o.p e.p; n=0
while [ $n -lt 10 ] && { [ ! -f out.e ] || [ ! -f err.e ]; }; do sleep .1 2>/dev/null || sleep 1; n=$((n+1)); done
printf '%%s %%s %%s\\n' $r $(($(date +%%s)-t0)) %(limit)s >s.tmp; mv s.tmp status"""
_PRESENT = """if [ ! -d "$k" ] || [ ! -O "$k" ]; then echo none; exit; fi
"""
_FOLLOW = """sz() { if [ -s "$k/$1" ]; then wc -c <"$k/$1"; else echo 0; fi; }
more() { if [ -s "$k/$1" ]; then cat "$k/$1"; else echo -1; fi; }
n=0; st=done
while [ ! -f "$k/status" ]; do
if [ -f "$k/started" ]; then read -r p t i <"$k/started"
if [ "$i" != "$(cat /proc/sys/kernel/random/boot_id 2>/dev/null)" ]; then st=rebooted; break; fi
if ! kill -0 "$p" 2>/dev/null; then sleep 1; [ -f "$k/status" ] || { st=died; break; }; fi
elif [ $n -gt 30 ]; then st=unborn; break; fi
printf 'run %s\\n' $(($(sz out)+$(sz err)+0))
n=$((n+1)); if [ $n -lt 20 ]; then sleep .1 2>/dev/null || sleep 1; else sleep 1; fi
done
r=-1; s=0; l=0; [ -f "$k/status" ] && read -r r s l <"$k/status"
[ -f "$k/collected" ] && st=collected
a=$(($(sz out)+0)); b=$(($(sz out.t)+0)); c=$(($(more out.m)+0)); e=$(($(sz err)+0)); f=$(($(sz err.t)+0)); g=$(($(more err.m)+0))
printf 'end %s %s %s %s %s %s %s %s %s %s\\n' $st $r $s $l $a $b $c $e $f $g
for x in "out $a" "out.t $b" "err $e" "err.t $f"; do set -- $x; [ $2 -gt 0 ] && head -c $2 "$k/$1"; done; exit 0"""
_FORGET = 'cd "$k" 2>/dev/null && rm -f out out.* err err.* && : >collected'


def folder_name(key: str) -> str:
    """The key's folder: keys may be any text, names on the host may not."""
    return hashlib.sha256(key.encode()).hexdigest()[:40]


def launch(run: str, *, key: str, limit_s: int) -> str:
    """Start `run` unless this key was ever started there, then follow it to its end."""
    runner = _RUNNER % {"half": HALF, "kill": KILL_AFTER_S, "limit": max(1, int(limit_s)), "run": quote(run)}
    start = _LAUNCH % {"days": KEPT_DAYS, "runner": quote(runner)}
    return _FOLDER % {"key": folder_name(key)} + start + _FOLLOW


def follow(*, key: str) -> str:
    """Follow what was started under this key; starts nothing."""
    return _FOLDER % {"key": folder_name(key)} + _PRESENT + _FOLLOW


def forget(*, key: str) -> str:
    """Remove the output once we have it. The status stays as a tomb, so that the key can never run again."""
    return _FOLDER % {"key": folder_name(key)} + _FORGET


@dataclass(frozen=True, slots=True)
class Stream:
    """What the host kept of one stream, and how long it was in all."""

    text: str
    total: int
    truncated: bool


class Report:
    """Reads what the follower prints: `run BYTES` lines, one `end …` line, then the kept output."""

    def __init__(self) -> None:
        self.state: State = "following"
        self.started = False  # the follower has seen the key's folder
        self.why = ""
        self.status = -1
        self.seconds = 0.0
        self.bytes_so_far = 0
        self._limit = 0
        self._sizes: list[int] = []
        self._line = bytearray()
        self._body = bytearray()

    def add(self, data: bytes) -> None:
        """Keeps no more than was announced, and of a line no more than one of ours is long: the host may be hostile."""
        at = 0
        while not self._sizes and at < len(data):
            end = data.find(b"\n", at)
            self._line += data[at : end if end >= 0 else None][: _LONGEST_LINE - len(self._line)]
            if end < 0:
                return
            self._said(self._line.decode("utf-8", "replace").split(" "))
            self._line.clear()
            at = end + 1
        if self._sizes:
            self._body += data[at : at + self._announced - len(self._body)]

    @property
    def _announced(self) -> int:
        return sum(self._sizes[n] for n in (0, 1, 3, 4))

    def _said(self, words: list[str]) -> None:
        match words:
            case ["run" | "end", *numbers] if not all(map(_NUMBER.fullmatch, numbers[words[0] == "end" :])):
                self.why = " ".join(words)[:200]
            case ["run", count]:
                self.started, self.bytes_so_far = True, int(count)
            case ["none"]:
                self.state = "none"
            case ["refused", *why]:
                self.state, self.why = "refused", " ".join(why)
            case ["end", state, status, seconds, limit, *sizes] if state in STATES and len(sizes) == 6:
                self.started, self.state = True, STATES[state]
                self.status, self.seconds, self._limit = int(status), float(seconds), int(limit)
                # What the host keeps of a stream is at most HALF of its head and HALF of its tail.
                self._sizes = [
                    int(size) if n in (2, 5) else min(max(int(size), 0), HALF) for n, size in enumerate(sizes)
                ]
            case _:
                self.why = " ".join(words)[:200]  # not ours: an error of the host's shell

    @property
    def timed_out(self) -> bool:
        """Ended by its limit: 124 and 137 may also be the program's own, so the host's clock decides."""
        return self.status in {124, 137} and self.seconds >= self._limit - 1

    @property
    def whole(self) -> bool:
        """Everything that was announced has arrived."""
        return bool(self._sizes) and len(self._body) >= self._announced

    def streams(self) -> tuple[Stream, Stream]:
        """stdout and stderr as far as they were kept."""
        if not self._sizes:
            return Stream("", 0, False), Stream("", 0, False)
        out_head, out_tail, out_more, err_head, err_tail, err_more = self._sizes
        at = out_head + out_tail
        return (
            _stream(bytes(self._body[:at]), out_head, out_more),
            _stream(bytes(self._body[at : at + err_head + err_tail]), err_head, err_more),
        )


def _stream(data: bytes, head: int, more: int) -> Stream:
    total = head + max(more, 0)
    unknown_rest = more < 0 and head >= HALF  # something still holds the pipe, so nobody counted
    text = joined(data[:head], data[head:], max(total, len(data)))
    return Stream(text, max(total, len(data)), unknown_rest or total > len(data))
