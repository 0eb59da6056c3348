"""What the hosts of the practice model print: real programs' output, made small."""

from __future__ import annotations

from tests.model.play import Shell

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
