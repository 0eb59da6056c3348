"""Values of configuration that people ask about: of nginx, Redis, PostgreSQL, MySQL, the kernel, limits, the JVM.

Only names from closed lists, or of a closed shape, are read, and never one that could hold a secret.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from bot.memory.facts.reading import OF_FILE, Reading, Source, environment, source

_SECRET = re.compile(r"pass|auth|secret|token|key|user|cred|salt", re.I)
_VALUE = r"[\w.,:/+*%-]{1,80}"
_NGINX = (
    r"worker_processes|worker_connections|worker_rlimit_nofile|keepalive_timeout|client_max_body_size|proxy_read_timeout"
    r"|proxy_connect_timeout|proxy_send_timeout|proxy_buffer_size|gzip|server_tokens|keepalive_requests|multi_accept"
    r"|fastcgi_read_timeout|ssl_protocols"
)
_REDIS = (
    r"maxmemory|maxmemory-policy|maxclients|appendonly|appendfsync|databases|timeout|tcp-keepalive|tcp-backlog|hz"
    r"|io-threads|port|cluster-enabled|lazyfree-lazy-eviction|repl-backlog-size|slowlog-log-slower-than|maxmemory-samples"
)
_POSTGRES = (
    r"max_connections|shared_buffers|work_mem|maintenance_work_mem|effective_cache_size|wal_level|max_wal_size|min_wal_size"
    r"|max_worker_processes|max_parallel_workers|checkpoint_timeout|synchronous_commit|autovacuum|statement_timeout"
    r"|random_page_cost|max_wal_senders|listen_addresses|port|data_directory|timezone|log_min_duration_statement"
    r"|idle_in_transaction_session_timeout|max_locks_per_transaction|effective_io_concurrency|TimeZone|default_pool_size"
    r"|max_client_conn|pool_mode|hot_standby|wal_keep_size|temp_buffers|lock_timeout"
)
_MYSQL = (
    r"max_connections|innodb_buffer_pool_size|wait_timeout|interactive_timeout|max_allowed_packet|slow_query_log"
    r"|long_query_time|innodb_log_file_size|innodb_flush_log_at_trx_commit|sync_binlog|binlog_format|server_id|read_only"
    r"|thread_cache_size|table_open_cache|character_set_server|sql_mode|port|datadir|time_zone|innodb_io_capacity|log_bin"
)
_PHP = r"pm|pm\.max_children|pm\.start_servers|pm\.max_requests|memory_limit|max_execution_time|upload_max_filesize|post_max_size"
_SSHD = r"port|permitrootlogin|passwordauthentication|maxsessions|maxstartups|clientaliveinterval"
_HAPROXY = r"maxconn|nbthread|nbproc"


def _file(program: str, path: str, line: str) -> Source:
    known = re.compile(line)

    def read(lines: list[str], _: re.Match[str]) -> Iterator[Reading]:
        for text in lines:
            if hit := known.fullmatch(text):
                yield _setting(program, hit[1], hit[2])

    return source(rf"{OF_FILE} {path}", read)


def _setting(program: str, name: str, value: str) -> Reading:
    value = value.strip("\"' ")
    return environment(f"{program} {name}", value, f"{program} has {name} set to {value}")


_PREFIX = r"(?:/[\w./-]{0,80}:)?(?:[0-9]{1,6}:)?\s{0,16}"


def _nginx_dump(lines: list[str], _: re.Match[str]) -> Iterator[Reading]:
    for line in lines:
        if hit := re.fullmatch(rf"{_PREFIX}({_NGINX})\s{{1,20}}([\w. ]{{1,40}});(?:\s{{0,9}}#.*)?", line):
            yield _setting("nginx", hit[1], hit[2])


def _redis_get(lines: list[str], _: re.Match[str]) -> Iterator[Reading]:
    """Names and values in turn, with or without `1) "…"` around them."""
    words = [re.sub(r'^ {0,4}[0-9]{1,4}\) "?|"$', "", line.strip()) for line in lines if line.strip()]
    for name, value in zip(words[::2], words[1::2], strict=False):
        if (
            re.fullmatch(r"[a-z][a-z0-9-]{1,50}", name)
            and re.fullmatch(_VALUE, value)
            and not _SECRET.search(name)
        ):
            yield _setting("redis", name, value)


def _redis_info(lines: list[str], _: re.Match[str]) -> Iterator[Reading]:
    for line in lines:
        if hit := re.fullmatch(r"(maxclients|maxmemory|maxmemory_policy|redis_mode):([\w-]{1,40})", line):
            yield _setting("redis", hit[1].replace("maxmemory_policy", "maxmemory-policy"), hit[2])


def _sql_show(lines: list[str], command: re.Match[str]) -> Iterator[Reading]:
    """`SHOW name`: a header, a rule and a value, or with -At the value alone."""
    name = command[1]
    filled = [
        line.strip()
        for line in lines
        if line.strip() and not re.fullmatch(r"\([0-9]{1,4} rows?\)|\s*-+\s*", line)
    ]
    if filled and filled[0].lower() == name.lower():
        filled = filled[1:]
    if len(filled) == 1 and re.fullmatch(_VALUE, filled[0]):
        yield _setting("postgresql", name, filled[0])


def _sql_rows(program: str, names: str) -> Source:
    known = re.compile(rf"[ |]{{0,4}}({names})[ \t|]{{1,60}}({_VALUE})[ |]{{0,60}}(?:\s.{{0,40}})?")

    def read(lines: list[str], _: re.Match[str]) -> Iterator[Reading]:
        for line in lines:
            if hit := known.fullmatch(line):
                yield _setting(program, hit[1], hit[2])

    return Source(re.compile(""), read)


def _mysql_at(lines: list[str], command: re.Match[str]) -> Iterator[Reading]:
    filled = [line.strip(" |") for line in lines if line.strip() and not line.startswith("+")]
    if filled and filled[0].startswith("@@"):
        filled = filled[1:]
    if len(filled) == 1 and re.fullmatch(_VALUE, filled[0]):
        yield _setting("mysql", command[1], filled[0])


def _sysctl(lines: list[str], _: re.Match[str]) -> Iterator[Reading]:
    for line in lines[:200]:
        hit = re.fullmatch(
            r"((?:net|vm|fs|kernel)(?:\.[\w-]{1,40}){1,6}) ?= ?([0-9]{1,20}(?:\s[0-9]{1,20}){0,3})", line
        )
        if hit and not re.search(
            r"random|entropy|nr_open_|inode-|dentry|file-nr|pty\.nr|netfilter\.nf_conntrack_count", hit[1]
        ):
            value = " ".join(hit[2].split())
            yield environment(f"sysctl {hit[1]}", value, f"the kernel setting {hit[1]} is {value}")


def _proc_sys(lines: list[str], command: re.Match[str]) -> Iterator[Reading]:
    filled = [line.strip() for line in lines if line.strip()]
    if len(filled) == 1 and re.fullmatch(r"[0-9]{1,20}(?:\s[0-9]{1,20}){0,3}", filled[0]):
        name, value = command[1].replace("/", "."), " ".join(filled[0].split())
        yield environment(f"sysctl {name}", value, f"the kernel setting {name} is {value}")


_LIMITS = {
    "n": "open files",
    "u": "processes",
    "c": "core file size",
    "s": "stack size",
    "v": "virtual memory",
}


def _ulimit(lines: list[str], command: re.Match[str]) -> Iterator[Reading]:
    filled = [line.strip() for line in lines if line.strip()]
    if len(filled) == 1 and re.fullmatch(r"[0-9]{1,20}|unlimited", filled[0]):
        what = _LIMITS[command[1]]
        yield environment(f"limit of {what}", filled[0], f"the limit of {what} is {filled[0]}")


def _ulimit_all(lines: list[str], _: re.Match[str]) -> Iterator[Reading]:
    for line in lines:
        hit = re.match(
            r"(open files|max user processes|core file size|stack size) .{1,40}\) ([0-9]{1,20}|unlimited)$",
            line,
        )
        hit = hit or re.match(
            r"Max (open files|processes|core file size|stack size) {1,40}([0-9]{1,20}|unlimited) ", line
        )
        if hit:
            what = hit[1].replace("max user processes", "processes")
            yield environment(f"limit of {what}", hit[2], f"the limit of {what} is {hit[2]}")


def _heap(lines: list[str], _: re.Match[str]) -> Iterator[Reading]:
    for line in lines:
        if "java" in line and (hit := re.search(r"(?:^|\s)-Xmx([0-9]{1,12}[kmgKMG]?)(?=\s|$)", line)):
            yield environment("JVM heap maximum", hit[1], f"the JVM's greatest heap (-Xmx) is {hit[1]}")
        if hit := re.match(r" {0,8}\w{1,12} (MaxHeapSize) {1,40}:?= ([0-9]{1,15}) ", line):
            yield environment("JVM heap maximum", hit[2], f"the JVM's greatest heap is {hit[2]} bytes")


def _enabled(lines: list[str], command: re.Match[str]) -> Iterator[Reading]:
    filled = [line.strip() for line in lines if line.strip()]
    if filled in (["enabled"], ["disabled"], ["masked"]):
        unit = command[1].removesuffix(".service")
        yield environment(f"{unit} at boot", filled[0], f"the service {unit} is {filled[0]} at boot")


_SQL = r"(?:.{0,200} )?-[A-Za-z]{0,5}"
_ROWS_POSTGRES = _sql_rows("postgresql", _POSTGRES).read
_ROWS_MYSQL = _sql_rows("mysql", _MYSQL).read

CONFIG: tuple[Source, ...] = (
    source(rf"nginx -T|{OF_FILE} /etc/nginx/\S{{1,80}}", _nginx_dump),
    source(r"redis-cli (?:.{0,80} )?(?i:config get) \S{1,60}(?: \S{1,60}){0,8}", _redis_get),
    source(r"redis-cli (?:.{0,80} )?(?i:info)(?: (?i:server|clients|memory|all))?", _redis_info),
    _file("redis", r"/etc/(?:redis/)?redis\S{0,40}\.conf", rf"{_PREFIX}({_REDIS})\s{{1,9}}({_VALUE})"),
    _file("postgresql", r"/\S{1,120}postgresql(?:\.auto)?\.conf", rf"{_PREFIX}({_POSTGRES})\s{{0,9}}=\s{{0,9}}('?{_VALUE}'?)(?:\s{{1,40}}#.*)?"),
    _file("pgbouncer", r"/etc/pgbouncer/pgbouncer\.ini", rf"{_PREFIX}(default_pool_size|max_client_conn|pool_mode|reserve_pool_size|max_db_connections)\s{{0,9}}=\s{{0,9}}({_VALUE})"),
    _file("mysql", r"/etc/(?:mysql/)?\S{0,80}\.cnf", rf"{_PREFIX}({_MYSQL})\s{{0,9}}=\s{{0,9}}({_VALUE})"),
    _file("php", r"/etc/php\S{0,80}\.(?:conf|ini)|/etc/php-fpm\.d/\S{1,40}", rf"{_PREFIX}({_PHP})\s{{0,9}}=\s{{0,9}}({_VALUE})"),
    _file("haproxy", r"/etc/haproxy/haproxy\.cfg", rf"{_PREFIX}({_HAPROXY}) {{1,9}}([0-9]{{1,8}})"),
    _file("sshd", r"/etc/ssh/sshd_config", rf"{_PREFIX}((?i:{_SSHD})) {{1,9}}([\w:-]{{1,40}})"),
    source(rf"psql {_SQL}c (?i:show) ({_POSTGRES});?(?: .{{0,80}})?", _sql_show),
    source(rf"psql {_SQL}c (?i:select) .{{1,100}} (?i:from pg_settings).{{0,200}}", _ROWS_POSTGRES),
    source(rf"(?:mysql|mariadb) {_SQL}e (?i:show (?:global |session )?variables).{{0,120}}", _ROWS_MYSQL),
    source(rf"(?:mysql|mariadb) {_SQL}e (?i:select) @@(?:global\.|session\.)?({_MYSQL});?", _mysql_at),
    source(r"sysctl (?:-n )?(?:-a|(?:net|vm|fs|kernel)\.\S{1,80}(?: \S{1,80}){0,8})", _sysctl),
    source(r"sysctl -n ((?:net|vm|fs|kernel)\.[\w.-]{1,80})", _proc_sys, bare=True),
    source(r"cat /proc/sys/((?:net|vm|fs|kernel)/[\w/-]{1,80})", _proc_sys, bare=True),
    source(r"ulimit -(?:H|S)?([nucsv])", _ulimit, bare=True),
    source(r"ulimit -a|cat /proc/(?:[0-9]{1,8}|self)/limits|prlimit .{0,40}", _ulimit_all),
    source(r"(?:ps|pgrep) .{1,80}|java .{0,80}-XX:\+PrintFlagsFinal .{0,80}|jcmd [0-9]{1,8} VM\.(?:flags|command_line)", _heap),
    source(r"systemctl is-enabled ([\w@.-]{1,60})", _enabled, bare=True),
)  # fmt: skip
