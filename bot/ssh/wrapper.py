"""The shell text around a read: clean environment, own session, hard limit, and death with our channel. Pure.

The shape was measured in dash and bash (docs/decisions/0020). What it must do:
- print a nonce marker before and after, so that banners and .bashrc noise are cut and the status is carried;
- `env -i` and /bin/sh: the account's functions, aliases and variables do not reach the command;
- own session and process group: whatever is left of the group is killed when the command ends;
- EOF on the channel's stdin is the death signal, so nobody may write to it or close it before the end.
"""

from __future__ import annotations

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
FIXED = {
    "PATH": PATH,
    "LC_ALL": "C.UTF-8",
    "TERM": "dumb",
    "PAGER": "cat",
    "SYSTEMD_PAGER": "cat",
    "GIT_PAGER": "cat",
    "LESSSECURE": "1",
}
KILL_AFTER_S = 2  # `timeout -k`: from TERM to KILL


def quote(text: str) -> str:
    """One word for any POSIX shell, whatever is in it. The only quoting function there is."""
    if "\0" in text:
        raise ValueError("a command cannot hold a NUL character")
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise ValueError("a command cannot hold half of a surrogate pair") from None
    return "'" + text.replace("'", "'\\''") + "'"


def read_command(
    run: str,
    nonce: str,
    *,
    limit_s: int,
    home: str,
    env: tuple[tuple[str, str], ...] = (),
    shell: str = "/bin/sh",
) -> str:
    """What is sent to the host for one command. limit_s: seconds until TERM; KILL follows 2 s later.

    shell: what runs the inner parts; another one than /bin/sh only to try this text out in it. run is quoted
    once for its own `sh -c`, and the whole inner script once more. A limit of 0 would be none, so it is 1 s.
    """
    variables = {**FIXED, "HOME": home, **dict(env)}
    given = " ".join(f"{name}={quote(value)}" for name, value in variables.items())
    limit = max(1, int(limit_s))
    # fd 3 is the channel's stdin (watched for EOF), fd 4 its stderr: what the wrapping shell itself has to
    # say about killed jobs goes nowhere, what the command says goes out.
    # A nested `timeout` makes a process group of its own, which no signal to the outer group reaches: after a
    # kill (124 and above) whatever is left of the whole session goes too (fields of /proc/*/stat: see proc(5)).
    inner = (
        "k() { for p in /proc/[0-9]*; do read -r l <$p/stat && set -- ${l##*) } && "
        '[ "$4" = $$ ] && [ $p != /proc/$$ ] && kill -KILL ${p#/proc/}; done; } 2>/dev/null; '
        f'printf "\\n@@{nonce}@@\\n" >&2; exec 4>&2 2>/dev/null; '
        f"timeout -k {KILL_AFTER_S} {limit} {shell} -c {quote(run)} </dev/null 2>&4 3<&- 4>&- & t=$!; "
        "( cat <&3 >/dev/null; kill -TERM $t; sleep 1; kill -KILL -$t ) >/dev/null 2>&1 4>&- & w=$!; "
        "exec 3<&-; wait $t; r=$?; kill -KILL -$t; kill -KILL $w; [ $r -lt 124 ] || k; "
        f'printf "\\n@@{nonce} %s@@\\n" $r >&4; printf "\\n@@{nonce} %s@@\\n" $r; exit $r'
    )
    return f"printf '\\n@@{nonce}@@\\n'; exec 3<&0; exec env -i {given} setsid -w {shell} -c {quote(inner)}"
