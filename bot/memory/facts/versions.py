"""Versions that programs print of themselves: the command, the program's name, and the line that carries it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from bot.memory.facts.reading import KUBERNETES, LOOSE, VERSION, Read, Reading, Source, software, source

V = f"({VERSION})"
L = f"({LOOSE})"
K = f"({KUBERNETES})"
ASK = "(?:-v|-V|--version|version)"

# (command line, program, pattern at the start of a line). The line names the program, so that nothing else does.
_NAMED: tuple[tuple[str, str, str], ...] = (
    (r"(?:nginx|openresty|tengine) -[vV]", "nginx", rf"nginx version: nginx/{L}"),
    (r"(?:nginx|openresty|tengine) -[vV]", "openresty", rf"nginx version: openresty/{L}"),
    (r"(?:nginx|openresty|tengine) -[vV]", "tengine", rf"(?i:tengine|nginx) version: Tengine/{L}"),
    (r"(?:redis|valkey)-server (?:--version|-v)", "redis-server", rf"(?:Redis|Valkey) server v={L} sha="),
    (r"redis-cli (?:--version|-v)", "redis-cli", rf"redis-cli {L}"),
    (r"redis-cli (?:.{0,80} )?info(?: server| all| everything)?", "redis-server", rf"redis_version:{L}$"),
    (r"redis-cli (?:.{0,80} )?INFO(?: SERVER| server| all)?", "redis-server", rf"redis_version:{L}$"),
    (r"psql (?:-V|--version)", "psql", rf"psql \(PostgreSQL\) {L}"),
    (
        r"psql (?:.{0,200} )?-[A-Za-z]{0,5}c (?i:select version ?\(\)|show server_version);?(?: .{0,80})?",
        "postgresql",
        rf" ?PostgreSQL {L} .{{0,20}}on ",
    ),
    (r"psql (?:.{0,200} )?-[A-Za-z]{0,5}c (?i:select version ?\(\));?(?: .{0,80})?", "postgresql", rf" ?PostgreSQL {L} \("),
    (r"(?:postgres|pg_config|postmaster) (?:-V|--version)", "postgresql", rf"(?:postgres \(PostgreSQL\)|PostgreSQL) {L}"),
    (r"(?:pg_dump|pg_basebackup) (?:-V|--version)", "postgresql-client", rf"pg_\w{{1,20}} \(PostgreSQL\) {L}"),
    (r"mysql (?:-V|--version)", "mysql", rf"mysql  ?Ver {L}(?!.{{0,20}}Distrib)"),
    (r"(?:mysql|mariadb) (?:-V|--version)", "mariadb", rf"(?:mysql|mariadb)  ?(?:Ver .{{1,20}} Distrib|from) {L}-MariaDB"),
    (r"mysqld (?:-V|--version)", "mysqld", rf"(?:/\S{{1,60}}/)?mysqld  ?Ver {L}(?!.{{0,30}}MariaDB)"),
    (r"(?:mysqld|mariadbd) (?:-V|--version)", "mariadb", rf"(?:/\S{{1,60}}/)?(?:mysqld|mariadbd)  ?Ver {L}-MariaDB"),
    (r"mongod --version", "mongod", rf"db version v{L}"),
    (r"mongos --version", "mongos", rf"mongos version v{L}"),
    (r"(?:mongo|mongosh) --version", "mongo", rf"MongoDB shell version v?{L}"),
    (rf"python(?:3|2)?(?:\.[0-9]{{1,2}})? {ASK}{{1,2}}", "python", rf"Python {V}"),
    (rf"java {ASK}|java -?-version", "java", rf"(?:openjdk|java) (?:version )?\"?{L}\"?(?: [0-9]{{4}}-| \"|$|\s)"),
    (r"javac -?-version", "javac", rf"javac {L}"),
    (r"go version", "go", rf"go version go{V} "),
    (r"ruby (?:-v|--version)", "ruby", rf"ruby {L}"),
    (r"php(?:[0-9.]{1,4})? (?:-v|--version)", "php", rf"PHP {L}.{{0,40}} \("),
    (r"perl (?:-v|--version)", "perl", rf"This is perl.{{1,50}}\(v{V}\)"),
    (r"(?:gcc|g\+\+|cc)(?:-[0-9]{1,2})? (?:-v|--version)", "gcc", rf"(?:gcc|g\+\+|cc)(?:-[0-9]{{1,2}})? \(.{{1,80}}?\) {V}|gcc version {V}"),
    (r"clang (?:-v|--version)", "clang", rf"(?:\w{{1,20}} )?clang version {L}"),
    (r"rustc (?:-V|--version)", "rustc", rf"rustc {L}"),
    (r"git (?:--version|version)", "git", rf"git (?:version|版本) {L}"),
    (r"docker (?:-v|--version)", "docker", rf"Docker version {L}"),
    (r"docker info", "docker", rf" ?Server Version: {L}$"),
    (r"docker-compose (?:-v|--version|version)|docker compose version", "docker-compose", rf"(?:docker-compose version|Docker Compose version) v?{L}"),
    (r"containerd (?:-v|--version)", "containerd", rf"containerd \S{{1,60}} v?{L}"),
    (r"runc (?:-v|--version)", "runc", rf"runc version {L}"),
    (r"podman (?:-v|--version)", "podman", rf"podman version {L}"),
    (r"crictl (?:-v|--version)", "crictl", rf"crictl version v?{L}"),
    (r"crictl version", "container runtime", rf"RuntimeVersion: {{1,4}}v?{L}"),
    (r"podman version", "podman", rf"Version: {{1,12}}{L}$"),
    (r"kubectl version(?: --client(?:=true)?| --short){0,2}", "kubectl", rf"Client Version: (?:version\.Info\{{.{{0,60}}GitVersion:\")?v{K}"),
    (r"kubectl version(?: --client(?:=true)?| --short){0,2}", "kubernetes", rf"Server Version: (?:version\.Info\{{.{{0,60}}GitVersion:\")?v{K}"),
    (r"kubelet --version", "kubelet", rf"Kubernetes v{K}"),
    (r"(?:kubeadm) version", "kubeadm", rf"kubeadm version: .{{0,60}}GitVersion:\"v{K}"),
    (r"helm version(?: .{0,40})?", "helm", rf"version\.BuildInfo\{{Version:\"v{L}|v{L}\+g[0-9a-f]{{6,12}}$"),
    (r"etcd --version", "etcd", rf"etcd Version: {L}"),
    (r"etcdctl version", "etcdctl", rf"etcdctl version: {L}"),
    (r"haproxy -vv?", "haproxy", rf"(?:HA-Proxy|HAProxy) version {L}"),
    (r"(?:apache2|apache2ctl|apachectl|httpd) -[vV]", "apache", rf"Server version: Apache/{L}"),
    (r"openssl version(?: -a)?", "openssl", rf"(?:OpenSSL|LibreSSL) {V}"),
    (r"(?:ssh|sshd) -V", "openssh", rf"OpenSSH_{V}"),
    (r"sshd -[vV]", "openssh", rf"OpenSSH_{V}"),
    (r"curl (?:-q )?(?:-V|--version)", "curl", rf"curl {L} \("),
    (r"wget (?:-V|--version)", "wget", rf"GNU Wget {L}"),
    (r"(?:systemctl|systemd|journalctl|timedatectl|hostnamectl) --version", "systemd", rf"systemd {L}"),
    (r"bash --version", "bash", rf"GNU bash(?:, version|，版本|，?\s?版本) ?{L}"),
    (r"zsh --version", "zsh", rf"zsh {L}"),
    (r"rabbitmq-diagnostics (?:-q )?server_version|rabbitmqctl status", "rabbitmq", rf"RabbitMQ version: {L}"),
    (r"kafka-topics(?:\.sh)? --version", "kafka", rf"{L}(?:-ccs)? \((?:Commit:|\S{{1,60}}\))"),
    (r"elasticsearch (?:-V|--version)", "elasticsearch", rf"Version: {L},"),
    (r"kibana --version", "kibana", rf"Kibana {L}"),
    (r"logstash --version", "logstash", rf"logstash {L}"),
    (r"(prometheus|node_exporter|alertmanager|promtool|blackbox_exporter|mysqld_exporter|postgres_exporter|redis_exporter|loki|promtail) --?version", "", rf"{{name}}, version {L}"),
    (r"(?:grafana-server|grafana) (?:-v|--version|server -v)", "grafana", rf"(?:Version|grafana version) {L}"),
    (r"terraform (?:version|-v|--version)", "terraform", rf"Terraform v{V}"),
    (r"ansible(?:-playbook)? --version", "ansible", rf"ansible(?:-playbook)? \[?(?:core )?{L}"),
    (r"vault (?:version|--version|-v)", "vault", rf"Vault v{L}"),
    (r"consul (?:version|--version|-v)", "consul", rf"Consul v{L}"),
    (r"nomad (?:version|-v)", "nomad", rf"Nomad v{L}"),
    (r"memcached (?:-V|--version)", "memcached", rf"memcached {L}"),
    (r"varnishd -V", "varnish", rf"varnishd \(varnish-{L}"),
    (r"named -[vV]", "bind", rf"BIND {L}"),
    (r"squid -v", "squid", rf"Squid Cache: Version {L}"),
    (r"postconf (?:-d )?mail_version", "postfix", rf"mail_version = {L}"),
    (r"dovecot --version", "dovecot", rf"{L} \([0-9a-f]{{6,12}}\)$"),
    (r"exim4? -bV", "exim", rf"Exim version {L}"),
    (r"(?:influxd|influx) version", "influxdb", rf"InfluxDB v?{L}|Influx CLI v?{L}"),
    (r"telegraf (?:version|--version)", "telegraf", rf"Telegraf v?{L}"),
    (r"traefik version", "traefik", rf"Version: {{1,10}}v?{L}$"),
    (r"caddy version", "caddy", rf"v{L} h1:"),
    (r"envoy --version", "envoy", rf"envoy  version: [0-9a-f]{{8,40}}/{L}/"),
    (r"zabbix_(?:agentd|server|agent2) (?:-V|--version)", "zabbix", rf"zabbix_\w{{1,10}} \(.{{1,20}}\) {L}"),
    (r"clickhouse(?:-server|-client)? (?:--version|-V)", "clickhouse", rf"ClickHouse (?:server|client|local) version {L}"),
    (r"(?:mvn|maven) (?:-v|--version)", "maven", rf"Apache Maven {L}"),
    (r"sqlite3 --?version", "sqlite", rf"{L} [0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}} "),
    (r"(?:vim|vi) --version", "vim", rf"VIM - Vi IMproved {L}"),
    (r"iptables (?:-V|--version)", "iptables", rf"iptables v{L}"),
    (r"nft (?:-v|--version)", "nftables", rf"nftables v{L}"),
    (r"ip -V", "iproute2", rf"ip utility, iproute2-{L}"),
    (r"lvm version", "lvm", rf" {{0,2}}LVM version: {{1,8}}{L}"),
    (r"curl .{0,60}(?:localhost|127\.0\.0\.1|\[::1\]):9200/?(?:\?pretty)?", "elasticsearch", rf" {{0,8}}\"number\" ?: ?\"{L}\""),
    (r"pip3? (?:-V|--version)", "pip", rf"pip {L} from"),
)  # fmt: skip

# The line is the version alone.
_BARE: tuple[tuple[str, str], ...] = (
    (r"(?:node|nodejs) (?:-v|--version)", "node"),
    (r"npm (?:-v|--version)", "npm"),
    (r"docker (?:version|info) (?:--format|-f)[ =]\{\{ ?\.Server\.?Version ?\}\}", "docker"),
    (r"yarn (?:-v|--version)", "yarn"),
    (r"pnpm (?:-v|--version)", "pnpm"),
    (r"rabbitmqctl version", "rabbitmq"),
    (r"rabbitmq-diagnostics (?:-q |--quiet )?server_version", "rabbitmq"),
    (r"helm version (?:--short|--template .{1,40})", "helm"),
    (r"gcc -dumpfullversion", "gcc"),
    (r"psql (?:.{0,100} )?-[A-Za-z]{0,5}c (?i:show server_version);?", "postgresql"),
)
_GENERIC = re.compile(r"([a-z][a-z0-9_.+-]{1,30}) (?:--version|-V|-v|version)")


def _named(program: str, pattern: str) -> Read:
    def read(lines: list[str], command: re.Match[str]) -> Iterator[Reading]:
        name = program or command[1]
        known = re.compile(pattern.replace("{name}", re.escape(name)) if not program else pattern)
        for line in lines:
            if hit := known.match(line):
                yield software(name, next(group for group in hit.groups() if group))

    return read


def _bare(program: str) -> Read:
    known = re.compile(rf"v?{L}(?:[-+ (].{{0,60}})?")

    def read(lines: list[str], _: re.Match[str]) -> Iterator[Reading]:
        filled = [line.strip() for line in lines if line.strip()]
        if len(filled) == 1 and (hit := known.fullmatch(filled[0])):
            yield software(program, hit[1])

    return read


def _generic(lines: list[str], command: re.Match[str]) -> Iterator[Reading]:
    """Most programs print their own name, then the version, on the first line."""
    name = command[1]
    line = next((line for line in lines if line.strip()), "")
    known = re.compile(
        rf"(?:GNU )?{re.escape(name)}(?: \([\w .+~/-]{{1,60}}\))?(?:,? {{1,2}}(?:-- )?version:?|:)?[ -]v?({VERSION})",
        re.I,
    )
    if hit := known.match(line):
        yield software(name, hit[1])


def _generic_bare(lines: list[str], command: re.Match[str]) -> Iterator[Reading]:
    """Asked for their version alone, other programs print nothing but it. One number would be too little to tell."""
    filled = [line.strip() for line in lines if line.strip()]
    if len(filled) == 1 and (hit := re.fullmatch(rf"v?({VERSION})", filled[0])) and "." in hit[1]:
        yield software(command[1], hit[1])


def _docker(lines: list[str], _: re.Match[str]) -> Iterator[Reading]:
    """`docker version`: the client's and the server's parts; Version stands under the part's name."""
    part = ""
    for line in lines:
        if hit := re.match(r"(Client|Server):|  ?(Engine|containerd|runc):$", line):
            part = hit[1] or hit[2]
        elif re.match(r" ?[\w-]{1,30}:$", line):
            part = ""
        elif hit := re.match(rf" {{1,3}}Version: {{1,14}}v?{L}", line):
            name = {"Client": "docker-client", "Server": "docker", "Engine": "docker"}.get(part, part)
            if name:
                yield software(name, hit[1])


def _mysql_select(lines: list[str], _: re.Match[str]) -> Iterator[Reading]:
    for line in lines:
        if hit := re.match(rf"\|? ?{L}(-[0-9A-Za-z.+~-]{{1,40}})?[ |]{{0,60}}$", line):
            yield software("mariadb" if "MariaDB" in (hit[2] or "") else "mysqld", hit[1])


VERSIONS: tuple[Source, ...] = (
    *(source(command, _named(program, pattern)) for command, program, pattern in _NAMED),
    *(source(command, _bare(program), bare=True) for command, program in _BARE),
    source(r"docker version", _docker),
    source(
        r"(?:mysql|mariadb) (?:.{0,100} )?(?:-[A-Za-z]{0,5}e|--execute) ?(?i:select (?:version\(\)|@@version));?",
        _mysql_select,
    ),
)
GENERIC = Source(_GENERIC, _generic)
GENERIC_BARE = source(r"([a-z][a-z0-9_.+-]{1,30}) --version", _generic_bare, bare=True)
