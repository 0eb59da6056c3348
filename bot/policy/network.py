"""Checkers for programs that talk to a service: curl, redis-cli, dig, kubectl."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase

from bot.policy.kinds import check_host, check_kind, reachable
from bot.policy.lexer import Part, Word, listed, literal
from bot.policy.match import read_options
from bot.policy.spec import Given, NotProved, Options, Scene
from bot.policy.sql import influx_query

_URL = re.compile(
    r"(?:(https?)://)?([A-Za-z0-9.-]{1,253}|\[[0-9A-Fa-f:]{2,45}\])(?::[0-9]{1,5})?"
    r"(/[A-Za-z0-9_./~:+,=-]*)?(\?[A-Za-z0-9_.,:=&*/+-]*)?"
)
# A GET that does something, or that shows settings: words in a path or a query.
_URL_ACTS = re.compile(
    r"(?i)(?:^|[^a-z])(?:reload|quit|shutdown|restart|stop|start|kill|exec|delete|remove|drop|flush|reset|clear|purge|gc|"
    r"stopping|undeploy|deploy|cancel|logout|login|pause|resume|retry|trigger|rotate|sync|drain|promote|evict|failover|"
    r"backup|restore|invalidate|expire|commit|vote|join|leave|set|put|post|write|create|update|enable|disable|admin|exit|abort|dump|heapdump|threaddump|env|environ|configprops|"
    r"config|secret|secrets|token|tokens|password|credentials|keys?|latest/meta-data|cmd|command|run|debug|action|_close|"
    r"_search|_source|_doc|_mget|_all_docs|_users|_replicate|_shutdown|_restart|_cancel|jolokia|phpinfo|pods|runningpods|httptrace|"
    r"build|rebuild|definitions|console|cgi-bin|agent|import|upload|install|uninstall|upgrade|register|deregister|activate|deactivate|"
    r"lock|unlock|scale|reboot|poweroff|send|publish|approve|reject|migrate|truncate|wipe|erase|rename|move|reindex|rebalance|replay|"
    r"_open|_forcemerge|_rollover|_refresh|_bulk|_sql|snapshot|containers|images|v1/kv|v1/secret)(?:$|[^a-z])"
)
_CURL = Options(
    flags=listed(
        "-q -s -S -I -v -k -i -f -G -4 -6 -N --silent --show-error --head --verbose --insecure --include --fail --get "
        "--ipv4 --ipv6 --compressed --no-buffer --http1.1 --http2 --fail-with-body"),
    values={
        "-m": "small", "--max-time": "small", "--connect-timeout": "small", "-o": "{/dev/null}", "--output": "{/dev/null}",
        "-w": "text", "--write-out": "text", "--data-urlencode": "text", "-H": "text", "--header": "text",
        "-X": "{GET|HEAD}", "--request": "{GET|HEAD}", "-A": "name", "--retry": "{0|1|2|3}",
    },
)  # fmt: skip
_FIELD = re.compile(r"[A-Za-z0-9_ .:,{}\"=~()\[\]+*/<>-]{1,200}")
_WRITE_OUT = re.compile(r"(?:[^%@\\\n]|%\{[a-z_]{1,30}\}|\\n|\\t|\\r){1,400}")
_HEADER = re.compile(
    r"(?:Accept|Host|Cache-Control|X-Request-Id|Accept-Encoding|Range|User-Agent|Connection): ?[A-Za-z0-9 ./,;=*_:+-]{1,120}"
)
_REDIS_OPTIONS = Options(
    flags=listed("--raw --no-raw --no-auth-warning --csv --bigkeys -3 -2"),
    values={"-h": "host", "-p": "number", "-n": "small"},
)
_REDIS_COMMANDS = re.compile(
    "|".join(
        (
            r"info(?: [a-z]+){0,4}|ping|dbsize|role|lastsave|time|module list|acl (?:whoami|cat)|pubsub numpat",
            r"client (?:list|info|id|getname)(?: type [a-z]+)?|slowlog len|slowlog get(?: -?[0-9]{1,6})?",
            r"latency (?:latest|doctor|histogram|history [a-z-]+)|memory (?:stats|doctor|malloc-stats)",
            r"memory usage [^ ]{1,200}(?: samples [0-9]{1,4})?|cluster (?:info|nodes|slots|shards|myid|links)",
            r"command (?:count|info [a-z]+)|(?:ttl|pttl|type|exists|strlen|llen|hlen|scard|zcard|xlen) [^ ]{1,200}",
            r"object (?:encoding|idletime|freq|refcount) [^ ]{1,200}|xinfo (?:stream|groups) [^ ]{1,200}",
            r"sentinel (?:masters|(?:slaves|replicas|sentinels|get-master-addr-by-name|ckquorum) [a-z0-9_-]+)",
            r"config get [a-z*?-]{1,60}",
        )
    )
)
_REDIS_SECRETS = (
    "requirepass",
    "masterauth",
    "masteruser",
    "tls-key-file-pass",
    "tls-client-key-file-pass",
    "primaryauth",
)
_IP_OBJECTS = listed(
    "address addr a link l route r ro neigh neighbour neighbor n rule ru maddress maddr tunnel netns netconf"
)
_IP_SHOW = listed("show list ls lst sh")  # and `s`, which for a link would mean set
_IP_OPTIONS = listed(
    "-4 -6 -s -d -o -j -p -c -br -brief -stats -statistics -details -oneline -json -pretty -color=never -h -human -V -ts"
)
_IP_WORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:@/-]{0,60}")
_IP_ADDRESS = re.compile(r"(?=[^.:]*[.:])[0-9A-Fa-f][0-9A-Fa-f.:]{1,44}(?:/[0-9]{1,3})?")
_IP_HINT = "ip is known to only read as: ip addr|link|route|neigh|rule [show …], ip route get ADDRESS"
_DIG_TYPES = listed("a aaaa mx ns txt soa cname ptr srv caa any ds dnskey")
_DIG_OPTIONS = re.compile(
    r"\+(?:no)?(?:short|trace|tcp|all|answer|stats|cmd|comments|question|authority|additional|recurse|dnssec|multiline|ttlid|identify)"
    r"|\+(?:time|tries|retry|timeout)=[0-9]{1,2}"
)
_KUBE_SECRET = re.compile(
    r"(?i)secret|sealedsecret|token|credential|serviceaccounts?/token|certificatesigning|^all$"
)


def curl(words: tuple[Word, ...], scene: Scene) -> tuple[Word, ...]:
    """GET and HEAD to hosts that are targets; `-q` is put first, so that no .curlrc of the account counts."""
    given = read_options(words, _CURL, scene)
    if not given.words:
        raise NotProved("curl without an address")
    for word in given.words:
        check_kind("text", word, scene)
        if word.glob:
            raise NotProved("curl: a glob in the address; quote it")
        check_url(word.text, scene)
    for name, value in given.options:
        if value is None:
            continue
        if name in ("-w", "--write-out") and (
            not _WRITE_OUT.fullmatch(value.text) or "%{output" in value.text
        ):
            raise NotProved("curl -w takes %{name} and plain text")
        if name in ("-H", "--header") and not _HEADER.fullmatch(value.text):
            raise NotProved("curl -H: only plain Accept, Host and the like")
        if name == "--data-urlencode":
            if not given.has("-G", "--get"):
                raise NotProved("curl --data-urlencode without -G sends a POST")
            _form(value.text)
    return (literal("-q"), *(w for w in words if w.text != "-q"))


def _form(field: str) -> None:
    name, _, value = field.partition("=")
    if name == "q" and influx_query(value):
        return
    if name in ("db", "query", "time", "match[]", "epoch", "pretty") and _FIELD.fullmatch(value):
        return
    raise NotProved("curl --data-urlencode: only q=SHOW …, db= and query= are known to only read")


def check_url(url: str, scene: Scene) -> None:
    """http(s) to a target, without user, fragment, escapes, or words that act."""
    found = _URL.fullmatch(url)
    if not found:
        raise NotProved(f"{url[:80]} is not a plain http address")
    if not reachable(found[2], scene.targets):
        raise NotProved(
            f"{found[2]} is not among the targets of hosts.yml (only they and localhost are asked); what is sent may leak"
        )
    path, query = found[3] or "", found[4] or ""
    # `/reloadConfig` says reload too.
    said = re.sub(r"(?<=[a-z])(?=[A-Z])", "-", path + query)
    if bad := _URL_ACTS.search(said):
        raise NotProved(f"the address says {bad[0].strip('/?&=')!r}, which may act or show secrets")
    if re.search(r"[?&]q=(?!show)", query, re.IGNORECASE) or "/.." in path:
        raise NotProved("the address carries a query that may act")


def redis(words: tuple[Word, ...], scene: Scene) -> tuple[Word, ...]:
    """Options stand before the command; the command is one that only reads."""
    at = 0
    if len(words) == 1 and words[0].text in ("--version", "-v"):
        return words
    while at < len(words) and words[at].text.startswith("-"):
        at += 2 if words[at].text in _REDIS_OPTIONS.values else 1
    given = read_options(words[:at], _REDIS_OPTIONS, scene)
    if at >= len(words):
        if given.has("--bigkeys"):
            return words
        raise NotProved("redis-cli without a command reads commands from elsewhere")
    if given.has("--bigkeys") or any(w.glob or " " in w.text or not w.text.isascii() for w in words[at:]):
        raise NotProved("redis-cli: a word that is not plain; quote globs")
    text = " ".join(w.text for w in words[at:])
    # Sub-commands are read in any case, keys are not changed by lowering a copy.
    if not _REDIS_COMMANDS.fullmatch(text.lower()):
        hint = "; KEYS and MONITOR slow the server down" if text[:4].lower() in ("keys", "moni") else ""
        raise NotProved(
            f"redis-cli {words[at].text} is not known to only read{hint}; by itself run INFO, SLOWLOG GET, CLIENT LIST, TTL key"
        )
    if text.lower().startswith("config get "):
        pattern = words[-1].text.lower()
        if "pass" in pattern or any(fnmatchcase(name, pattern) for name in _REDIS_SECRETS):
            raise NotProved(f"WARNING: CONFIG GET {words[-1].text} can show a password")
    return words


def ip(words: tuple[Word, ...], scene: Scene) -> tuple[Word, ...]:
    """Show and list, written out, and `route get`: ip takes any beginning of add, delete or flush for the word."""
    at = 0
    while at < len(words) and words[at].text in _IP_OPTIONS:
        at += 1
    texts = [word.text for word in words[at:]]
    if any(word.glob for word in words) or (texts and texts[0] not in _IP_OBJECTS):
        raise NotProved(_IP_HINT)
    if len(texts) < 2:
        return words
    read = (
        texts[1] in _IP_SHOW
        or (texts[1] == "s" and texts[0][0] in "arn")
        or (
            texts[0][0] == "r"
            and texts[1] == "get"
            and len(texts) > 2
            and bool(_IP_ADDRESS.fullmatch(texts[2]))
        )
    )
    if not read or not all(_IP_WORD.fullmatch(text) for text in texts[2:]):
        raise NotProved(_IP_HINT)
    return words


def dig(words: tuple[Word, ...], scene: Scene) -> tuple[Word, ...]:
    """Names and servers that are targets."""
    at, named = 0, False
    while at < len(words):
        word, text = words[at], words[at].text
        at += 1
        if text == "-x" and at < len(words):
            check_host(words[at], scene)
            at, named = at + 1, True
        elif text in ("-4", "-6") or _DIG_OPTIONS.fullmatch(text) or text.lower() in _DIG_TYPES:
            continue
        elif text.startswith("@"):
            check_host(Word((Part(text[1:]),), text[1:]), scene)
        elif text[:1] in "-+":
            raise NotProved(f"dig {text} is not known to be harmless")
        else:
            check_host(word, scene)
            named = True
    if not named:
        raise NotProved("dig without a name")
    return words


def kubectl(given: Given, scene: Scene) -> None:
    """Kinds of objects by name; no secrets, and the content of config maps asks."""
    for word in given.words:
        for part in re.split(r"[,/.]", word.text):
            if _KUBE_SECRET.search(part):
                raise NotProved(f"WARNING: kubectl {word.text} may show secrets")
    if given.has("-f", "--follow") and not scene.bounded:
        raise NotProved("following is unbounded; try: timeout 10 kubectl logs -f …")
    output = given.value("-o", "--output") or ""
    if output not in ("", "wide", "name"):
        _no_config_maps(given)


def kubectl_describe(given: Given, scene: Scene) -> None:
    """As `get`, but shows the content of what it names."""
    kubectl(given, scene)
    _no_config_maps(given)


def _no_config_maps(given: Given) -> None:
    for word in given.words:
        if any(re.match(r"(?:cm|configmaps?)(?:$|[.])", part) for part in re.split(r"[,/]", word.text)):
            raise NotProved("WARNING: kubectl: the content of a config map may hold secrets")
