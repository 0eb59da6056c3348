"""Versions as package managers list them: dpkg, apt, rpm, yum and dnf, apk, pip, npm, snap, brew, gem, helm."""

from __future__ import annotations

import re
from collections.abc import Iterator

from bot.memory.facts.reading import LOOSE, Read, Reading, Source, software, source

MOST = 20  # packages of one listing, when the command does not name any
_FULL = r"[0-9][0-9A-Za-z.+~:_^-]{0,60}"
_NAME = r"[A-Za-z0-9][A-Za-z0-9.+_-]{0,60}"
_UPSTREAM = re.compile(rf"(?:[0-9]{{1,4}}:)?({LOOSE}(?:p[0-9]{{1,2}}|[a-z](?![a-z0-9]))?)")
# Packages that hold a program under another name than its own, so that both ways to ask meet in one fact.
_PROGRAM = re.compile(
    r"(?P<nginx>nginx(?:-core|-full|-light)?)|(?P<python>python3?|python3\.[0-9]{1,2}|python3-minimal)"
    r"|(?P<postgresql>postgresql-[0-9]{1,2}|postgresql[0-9]{0,2}-server)|(?P<psql>postgresql-client-[0-9]{1,2})"
    r"|(?P<java>(?:openjdk-[0-9]{1,2}-(?:jre|jdk)(?:-headless)?|java-[0-9.]{1,6}-openjdk(?:-headless)?))"
    r"|(?P<mysqld>mysql-(?:community-)?server(?:-[0-9.]{1,4}|-core-[0-9.]{1,4})?)"
    r"|(?P<mariadb>mariadb-server(?:-[0-9.]{1,6})?)|(?P<docker>docker-ce|docker\.io|moby-engine)"
    r"|(?P<containerd>containerd(?:\.io)?)|(?P<apache>apache2|httpd)|(?P<node>nodejs)|(?P<go>golang-go|golang)"
    r"|(?P<openssh>openssh-(?:server|client))|(?P<rabbitmq>rabbitmq-server)|(?P<mongod>mongodb-org-server)"
    r"|(?P<redis_server>redis-server)|(?P<git>git)|(?P<php>php[0-9.]{1,4}-cli|php-cli)"
)
# Of a whole listing without names only these are kept: what people ask about.
_KNOWN = re.compile(
    r"(?:nginx|redis|redis-server|valkey|postgresql-[0-9]{1,2}|mysql-server|mariadb-server|mongodb-org-server|memcached"
    r"|docker-ce|docker\.io|containerd(?:\.io)?|podman|kubelet|kubectl|kubeadm|haproxy|apache2|httpd|openssl|openssh-server"
    r"|rabbitmq-server|elasticsearch|kibana|logstash|grafana|prometheus|systemd|bash|git|curl|python3|nodejs"
    r"|openjdk-[0-9]{1,2}-jre-headless|varnish|squid|bind9|postfix|dovecot-core|php-fpm|golang|ansible|terraform|consul|vault"
    r"|django|flask|fastapi|requests|numpy|pandas|celery|gunicorn|uwsgi|sqlalchemy|ansible-core|npm|pm2|yarn|typescript)"
)


def _package(name: str, version: str) -> Reading | None:
    if not (hit := _UPSTREAM.match(version)):
        return None
    known = _PROGRAM.fullmatch(name)
    program = (known.lastgroup or name).replace("_", "-") if known else name
    return software(program, hit[1], "" if (program, hit[1]) == (name, version) else f"{name} {version}")


def _rows(*patterns: str) -> Read:
    """Each pattern: a whole line with the groups `name` and `version`."""
    known = [re.compile(pattern) for pattern in patterns]

    def read(lines: list[str], command: re.Match[str]) -> Iterator[Reading]:
        rows = [(hit["name"], hit["version"]) for line in lines for p in known if (hit := p.fullmatch(line))]
        if len(rows) > MOST:
            rows = [(name, version) for name, version in rows if _KNOWN.fullmatch(name.lower())]
        for name, version in rows:
            if found := _package(name, version):
                yield found

    return read


def _fields(name: str, version: str) -> Read:
    """One package described by `Name: …` and `Version: …` lines. A record begins with its name."""
    names, versions = (
        re.compile(rf"{name} ?[:：] {{0,4}}({_NAME})"),
        re.compile(rf"{version} ?[:：] {{0,4}}({_FULL})"),
    )

    def read(lines: list[str], _: re.Match[str]) -> Iterator[Reading]:
        current, installed = "", True
        for line in lines:
            if hit := names.fullmatch(line):
                current, installed = hit[1], True
            elif line.startswith("Status:"):
                installed = line.endswith(" installed") and "not-installed" not in line
            elif current and installed and (hit := versions.fullmatch(line)):
                if found := _package(current, hit[1]):
                    yield found
                current = ""

    return read


def _policy(lines: list[str], _: re.Match[str]) -> Iterator[Reading]:
    """`apt-cache policy`: the name flush left, the installed version under it; "(none)" is none."""
    current = ""
    for line in lines:
        if hit := re.fullmatch(rf"({_NAME})(?::[a-z0-9]{{2,8}})?[:：]", line):
            current = hit[1]
        elif current and (hit := re.fullmatch(rf"  (?:Installed|已安装)[:：] ?({_FULL})", line)):
            if found := _package(current, hit[1]):
                yield found
            current = ""


def _one_version(lines: list[str], command: re.Match[str]) -> Iterator[Reading]:
    """A query that prints the version alone, of the one package that it names."""
    filled = [line.strip() for line in lines if line.strip()]
    if len(filled) == 1 and re.fullmatch(_FULL, filled[0]) and (found := _package(command[1], filled[0])):
        yield found


_ARCH = r"(?:x86_64|aarch64|noarch|i[36]86|ppc64le|s390x|amd64|arm64|armhf|all)"
_ARGS = r"(?: .{0,300})?"

PACKAGES: tuple[Source, ...] = (
    source(rf"(?:dpkg|dpkg-query) (?:-l|--list){_ARGS}", _rows(
        rf"[ih]i  (?P<name>{_NAME})(?::{_ARCH})? {{1,80}}(?P<version>{_FULL}) {{1,80}}{_ARCH} .*")),
    source(rf"(?:dpkg|dpkg-query) (?:-s|--status){_ARGS}", _fields("Package", "Version")),
    source(rf"dpkg-query -W{_ARGS}", _rows(rf"(?P<name>{_NAME})(?::{_ARCH})?[\t ](?P<version>{_FULL})(?:\n)?")),
    source(rf"dpkg-query (?:-W )?-f(?:=|ormat=)? ?\$\{{Version\}}(?:\\n)? (?:-W )?({_NAME})", _one_version, bare=True),
    source(rf"rpm -q --(?:qf|queryformat)(?: |=)%\{{VERSION\}}(?:\\n)? ({_NAME})", _one_version, bare=True),
    source(rf"apt list{_ARGS}", _rows(
        rf"(?P<name>{_NAME})/\S{{1,80}} (?P<version>{_FULL}) {_ARCH} [\[【](?:installed|已安装).{{0,80}}")),
    source(rf"apt-cache policy{_ARGS}|apt policy{_ARGS}", _policy),
    source(rf"rpm (?:-q|-qa|--query|-q -a){_ARGS}", _rows(
        rf"(?P<name>[A-Za-z][A-Za-z0-9.+_]{{0,40}}(?:-[A-Za-z0-9.+_]{{1,30}}){{0,5}}?)-(?P<version>[0-9][0-9A-Za-z.+~_^:]{{0,30}}-[0-9][0-9A-Za-z.+~_^]{{0,40}}?)(?:\.{_ARCH})?")),
    source(rf"rpm (?:-qi|-q -i|-qai){_ARGS}", _fields(r"(?:Name|名称) {0,12}", r"(?:Version|版本) {0,12}")),
    source(rf"(?:yum|dnf) (?:-q )?list{_ARGS}", _rows(
        rf"(?P<name>{_NAME}?)\.{_ARCH} {{1,80}}(?P<version>{_FULL}) {{1,80}}(?:@\S{{1,60}}|installed)")),
    source(rf"(?:yum|dnf) (?:-q )?list (?:--)?installed{_ARGS}", _rows(
        rf"(?P<name>{_NAME}?)\.{_ARCH} {{1,80}}(?P<version>{_FULL}) {{1,80}}[\w.-]{{1,60}}")),
    source(rf"apk (?:info|list|version){_ARGS}", _rows(
        rf"(?P<name>{_NAME}?)-(?P<version>[0-9][0-9A-Za-z._]{{0,30}}-r[0-9]{{1,4}})(?: {_ARCH} .*\[installed\])?")),
    source(rf"(?:python3? -m )?pip3? (?:list|freeze){_ARGS}", _rows(
        rf"(?P<name>{_NAME}) {{1,60}}(?P<version>{_FULL})", rf"(?P<name>{_NAME})==(?P<version>{_FULL})")),
    source(rf"(?:python3? -m )?pip3? show{_ARGS}", _fields("Name", "Version")),
    source(rf"npm (?:ls|list|ll) .{{0,100}}-g.{{0,100}}|npm -g (?:ls|list){_ARGS}", _rows(
        rf"[├└+`]─?─?┬?-{{0,2}} (?P<name>(?:@[a-z0-9-]{{1,40}}/)?{_NAME})@(?P<version>{_FULL})")),
    source(rf"snap list{_ARGS}", _rows(
        rf"(?P<name>[a-z][a-z0-9-]{{1,40}}) {{1,40}}v?(?P<version>{_FULL}) {{1,40}}[0-9]{{1,7}} {{1,40}}\S.*")),
    source(rf"brew list --versions{_ARGS}", _rows(rf"(?P<name>{_NAME}) (?P<version>{_FULL})")),
    source(rf"gem list{_ARGS}", _rows(rf"(?P<name>{_NAME}) \((?:default: )?(?P<version>{_FULL})\)")),
)  # fmt: skip
