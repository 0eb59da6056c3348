"""Checkers for SQL clients: one SHOW, or one SELECT over named statistics views with known functions."""

from __future__ import annotations

import re
from collections.abc import Iterator
from fnmatch import fnmatchcase

from bot.policy.lexer import listed
from bot.policy.spec import Given, NotProved, Scene

_PIECE = re.compile(
    r"\s+|'(?:[^'\\]|'')*'|[A-Za-z_][A-Za-z0-9_$]*(?:\.[A-Za-z_][A-Za-z0-9_$]*)*|\d+(?:\.\d+)?|::|<>|<=|>=|!=|\|\||[(),*=<>+/%;.-]"
)
_FUNCTIONS = listed(
    "count sum min max avg now age round coalesce date_trunc extract abs greatest least length left right substr substring "
    "lower upper concat nullif pg_size_pretty pg_database_size pg_relation_size pg_total_relation_size pg_table_size "
    "pg_indexes_size pg_blocking_pids pg_is_in_recovery pg_last_wal_receive_lsn pg_last_wal_replay_lsn pg_current_wal_lsn "
    "pg_last_xact_replay_timestamp pg_wal_lsn_diff pg_postmaster_start_time version current_database in and or not on "
    "any filter where over by using values format_type interval timestampdiff format ifnull date_format unix_timestamp "
    "clock_timestamp array_length to_char justify_interval select from as exists having cast inet_server_addr"
)
_PG_VIEWS = re.compile(
    r"(?:pg_catalog\.)?(?:pg_stat_(?!get|reset|ssl_key)[a-z_]+|pg_statio_[a-z_]+|pg_locks|pg_database|pg_tables|pg_indexes|pg_views|"
    r"pg_class|pg_namespace|pg_index|pg_settings|pg_replication_slots|pg_prepared_xacts|pg_extension|pg_tablespace"
    r")|information_schema\.(?:tables|columns|schemata)"
)
_MY_VIEWS = re.compile(
    r"information_schema\.(?:processlist|innodb_trx|innodb_locks|innodb_lock_waits|innodb_metrics|tables|schemata|engines|plugins|statistics|"
    r"columns|global_status|innodb_buffer_pool_stats)|performance_schema\.(?:global_status|threads|events_[a-z_]+|data_locks|"
    r"data_lock_waits|metadata_locks|replication_[a-z_]+|table_io_[a-z_]+|memory_summary_[a-z_]+|file_summary_[a-z_]+)|"
    r"sys\.(?!ps_|create|execute|diagnostics|table_exists)[a-z_$]+",
    re.IGNORECASE,
)
_MOST_SOURCES = 2  # each further one multiplies: four catalogues are 25,000,000,000 rows
_NEVER = listed(
    "into insert update delete drop alter create grant revoke copy call do set reset execute prepare deallocate lock vacuum "
    "analyze truncate listen notify load handler for share outfile dumpfile benchmark sleep pg_sleep lateral recursive table "
    "pg_shadow pg_authid pg_user_mapping rolpassword passwd authentication_string procedure union"
)
_PG_SHOW = re.compile(r"show +(?:all|[a-z_]+)", re.IGNORECASE)
# Settings hold passwords of standbys and scripts; ask for them by name. A name with a dot is an extension's or
# an application's own, and nobody knows what it holds.
_PG_SECRETS = (
    "primary_conninfo", "ssl_passphrase_command", "archive_command", "restore_command", "archive_cleanup_command",
    "recovery_end_command", "archive_library", "krb_server_keyfile", "session_preload_libraries",
)  # fmt: skip
_PG_SECRET = re.compile(r"conninfo|passphrase|_command\b|archive_library|keyfile")
_PG_SETTINGS = re.compile(
    r"select +[a-z_*, ]{1,120} +from +(?:pg_catalog\.)?pg_settings +where +name +(?:(?:=|like|ilike) +'([a-z_%]{3,80})'"
    r"|in *\( *'[a-z_]{3,80}'(?: *, *'[a-z_]{3,80}'){0,30} *\))(?: +order +by +[a-z0-9_]{1,20})?",
    re.IGNORECASE,
)
_PG_META = re.compile(r"\\(?:l|d|dt|di|dv|dn|du|dx|db|conninfo|encoding)[+]?")
_LIKE = r"(?: +like +'[A-Za-z0-9_%.-]{1,64}'| +where +variable_name(?: *= *| +like +)'[A-Za-z0-9_%]{1,64}')?"
_MY_SHOW = re.compile(
    rf"show +(?:(?:(?:global|session) +)?(?:status|variables){_LIKE}|(?:full +)?processlist|engine +innodb +(?:status|mutex)"
    rf"|engines|(?:slave|replica|master|binary log) +status|(?:slave|replica) +hosts|replicas|(?:binary|master) +logs"
    rf"|databases{_LIKE}|schemas|open +tables|(?:full +)?tables(?: +from +[A-Za-z0-9_]+)?{_LIKE}"
    rf"|table +status(?: +from +[A-Za-z0-9_]+)?{_LIKE}|(?:index|indexes|columns) +from +[A-Za-z0-9_.]+|plugins|warnings|errors"
    rf"|count\(\*\) +(?:warnings|errors))",
    re.IGNORECASE,
)  # fmt: skip
_INFLUX = re.compile(
    r"show +(?:databases|measurements|series|stats|diagnostics|queries|shards|shard groups|subscriptions|users"
    r"|retention policies(?: +on +\"?[A-Za-z0-9_]+\"?)?|continuous queries|(?:field|tag) keys(?: +from +\"?[A-Za-z0-9_]+\"?)?"
    r"|(?:measurement|series) (?:exact )?cardinality)(?: +on +\"?[A-Za-z0-9_]+\"?)?(?: +limit +[0-9]{1,6})?;?",
    re.IGNORECASE,
)


def psql(given: Given, scene: Scene) -> None:
    """Every `-c` is one read; the renderer adds -X, so that no file of the account is run first."""
    statements = [v.text for name, v in given.options if name in ("-c", "--command") and v]
    if not statements and not given.has("-l", "--list", "--version"):
        raise NotProved('psql without -c reads commands from elsewhere; use psql -c "SELECT …"')
    for statement in statements:
        if _PG_META.fullmatch(statement):
            continue
        plain = _single(statement)
        if _PG_SECRET.search(plain.lower()) or plain.lower() == "show all":
            raise NotProved("WARNING: SQL: settings that may hold a password; use SHOW name")
        if _PG_SHOW.fullmatch(plain) or _setting_by_name(plain):
            continue
        if "pg_settings" in plain.lower():
            raise NotProved(
                "WARNING: SQL: pg_settings may hold a password; use SELECT … WHERE name = 'x' or SHOW x"
            )
        if re.search(r"\bformat\b", plain.lower()):
            raise NotProved("SQL: format takes widths that fill the memory; use to_char or ||")
        _select(plain, _PG_VIEWS)


def _setting_by_name(statement: str) -> bool:
    found = _PG_SETTINGS.fullmatch(statement)
    if not found:
        return False
    pattern = (found[1] or "").lower().replace("%", "*").replace("_", "?")
    return not any(fnmatchcase(name, pattern) for name in _PG_SECRETS)


def mysql(given: Given, scene: Scene) -> None:
    """Every `-e` is one read."""
    statements = [v.text for name, v in given.options if name in ("-e", "--execute") and v]
    if not statements and not given.has("--version"):
        raise NotProved('mysql without -e reads commands from elsewhere; use mysql -e "SHOW …"')
    for statement in statements:
        plain = _single(statement.strip().removesuffix("\\G"))
        if not _MY_SHOW.fullmatch(plain):
            _select(plain, _MY_VIEWS)


def influx(given: Given, scene: Scene) -> None:
    """`-execute` takes one SHOW."""
    statement = given.value("-execute")
    if statement is None or not influx_query(statement):
        raise NotProved('influx is known to only read as: influx -execute "SHOW …"')


def influx_query(statement: str) -> bool:
    """Whether a query is one SHOW."""
    return bool(_INFLUX.fullmatch(statement.strip()))


def _single(statement: str) -> str:
    plain = statement.strip().rstrip(";").strip()
    if ";" in plain or "\\" in plain:
        raise NotProved("SQL: one statement, without ; and \\ inside")
    return plain


def _select(statement: str, views: re.Pattern[str]) -> None:
    """A SELECT of known functions over named views. Raises NotProved, also for what it cannot read."""
    pieces = _pieces(statement)
    if not pieces or pieces[0] != "select" or "--" in statement or "/*" in statement:
        raise NotProved("SQL: only one SHOW or SELECT runs without asking")
    for before, piece in zip(["", *pieces], pieces, strict=False):
        if piece in _NEVER or piece.rpartition(".")[2] in _NEVER:
            raise NotProved(f"SQL: {piece} is not known to only read")
        if piece == "(" and (before[:1].isalpha() or before[:1] == "_") and before not in _FUNCTIONS:
            raise NotProved(f"SQL: the function {before} is not known to only read")
    sources = list(_sources(pieces))
    if len(sources) > _MOST_SOURCES:
        raise NotProved(f"SQL: joins more than {_MOST_SOURCES} views, which may take very long")
    for source in sources:
        if not views.fullmatch(source):
            raise NotProved(f"SQL: {source or 'nothing'} is not a statistics view; its data may be anybody's")
    if not sources and len(pieces) > 2 and not any(piece in _FUNCTIONS for piece in pieces[1:]):
        raise NotProved("SQL: a SELECT over no known view")


def _pieces(statement: str) -> list[str]:
    out: list[str] = []
    at = 0
    while at < len(statement):
        found = _PIECE.match(statement, at)
        if not found:
            raise NotProved(f"SQL: {statement[at]} is not read")
        if not found[0].isspace():
            out.append(found[0] if found[0][0] == "'" else found[0].lower())
        at = found.end()
    return out


def _sources(pieces: list[str]) -> Iterator[str]:
    """What stands after FROM, JOIN, and each comma of a FROM clause; empty text when nothing does."""
    listing, outer = False, list[bool]()  # listing: a comma here names a further source
    for number, piece in enumerate(pieces):
        following = pieces[number + 1] if number + 1 < len(pieces) else ""
        if piece == "(":
            outer.append(listing)
            listing = False
        elif piece == ")":
            listing = outer.pop() if outer else False
        elif (
            piece == "join"
            or (piece == "," and listing)
            or (piece == "from" and not _in_extract(pieces, number))
        ):
            yield following
            listing = True
        elif piece in ("where", "group", "order", "limit", "having"):
            listing = False


def _in_extract(pieces: list[str], number: int) -> bool:
    """The FROM in `extract(epoch from x)` and `substring(x from 1)`."""
    return number >= 3 and pieces[number - 2] == "(" and pieces[number - 3] in ("extract", "substring")
