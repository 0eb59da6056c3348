"""Nothing is learnt of outputs that may be another machine's, another program's, or partly something else."""

from __future__ import annotations

import pytest

from bot.memory import Found, Heard, extract
from storage.records import Role


def printed(command: str, text: str) -> tuple[Found, ...]:
    return extract([Heard(Role.TOOL, text, host="web-1", command=command, exit_status=0)])


@pytest.mark.parametrize(
    ("command", "text"),
    [
        ("redis-cli -h 10.0.0.9 INFO server", "redis_version:7.2.4"),
        ("redis-cli -u redis://db-9 INFO server", "redis_version:7.2.4"),
        ("psql -h db-9 -Atc 'show max_connections'", "200"),
        ("psql -hdb-9 -Atc 'show max_connections'", "200"),
        ("psql --host=db-9 -Atc 'show max_connections'", "200"),
        ("psql postgresql://db-9/app -Atc 'show max_connections'", "200"),
        ("psql 'host=db-9 dbname=app' -Atc 'show max_connections'", "200"),
        ("PGHOST=db-9 psql -Atc 'show max_connections'", "200"),
        ("mysql -h db-9 -e 'select version()'", "version()\n8.0.36"),
        ("mysql --host db-9 -e 'select version()'", "version()\n8.0.36"),
        ("DOCKER_HOST=ssh://web-9 docker --version", "Docker version 28.2.2, build e6534b4"),
    ],
)
def test_of_another_host(command: str, text: str) -> None:
    assert not printed(command, text)


@pytest.mark.parametrize(
    ("command", "text", "value"),
    [
        ("redis-cli -h localhost -p 6380 INFO server", "redis_version:7.2.4", "7.2.4"),
        ("psql -h /var/run/postgresql -Atc 'show max_connections'", "200", "200"),
        ("psql --host=127.0.0.1 -Atc 'show max_connections'", "200", "200"),
        ("mysql -h127.0.0.1 -e 'select version()'", "version()\n8.0.36", "8.0.36"),
    ],
)
def test_of_this_host_by_its_local_name(command: str, text: str, value: str) -> None:
    assert [found.value for found in printed(command, text)] == [value]


@pytest.mark.parametrize(
    ("command", "text"),
    [
        ("/tmp/nginx -v", "nginx version: nginx/9.9.9"),
        ("./nginx -v", "nginx version: nginx/9.9.9"),
        ("PATH=/tmp nginx -v", "nginx version: nginx/9.9.9"),
        ("/home/bob/venv/bin/python -V", "Python 2.1.0"),
        ("cat /tmp/x /etc/os-release", 'PRETTY_NAME="Other 9"'),
        ("cat notes /etc/redis/redis.conf", "maxmemory 1gb"),
        ("grep -h max notes /etc/redis/redis.conf", "maxmemory 1gb"),
        ("grep max notes /etc/redis/redis.conf", "notes:maxmemory 1gb"),
        ("echo maxclients:5 ; redis-cli INFO clients", "maxclients:5\n# Clients"),
        ("nginx -v || echo nginx version: nginx/9.9.9", "nginx version: nginx/9.9.9"),
        ("printf redis_version:9 ; redis-cli INFO", "redis_version:9"),
        ("rpm -q -p /tmp/nginx.rpm", "nginx-9.9.9-1.el9.x86_64"),
        ("rpm -qa --root=/mnt", "nginx-9.9.9-1.el9.x86_64"),
        ("dpkg --root=/mnt -l", "ii  nginx  9.9.9-1  amd64  web server"),
        ("apt-cache show nginx", "Package: nginx\nVersion: 9.9.9-1"),
        ("yum list nginx", "Available Packages\nnginx.x86_64     1:9.9.9-1.el9     epel"),
        ("frobnicate --version", "2024"),
        ("frobnicate --version", "loaded\n1.2.3"),
        ("kubectl version -o json", '{\n  "serverVersion": {\n    "gitVersion": "v9.9.9"\n  }\n}\nhello'),
    ],
)
def test_of_what_is_not_wholly_known(command: str, text: str) -> None:
    assert not printed(command, text)


def test_of_an_unlisted_program_that_prints_its_version_alone() -> None:
    assert [found.text for found in printed("frobnicate --version", "v4.2.5")] == [
        "On web-1, frobnicate is version 4.2.5."
    ]


@pytest.mark.parametrize("client", ["", " --client", " --client=true"])
@pytest.mark.parametrize("flag", ["-o json", "-ojson", "--output=json"])
def test_of_kubectl_s_documents(client: str, flag: str) -> None:
    text = (
        '{\n  "clientVersion": {\n    "major": "1",\n    "gitVersion": "v1.29.3",\n    "platform": "linux/amd64"\n  },\n'
        '  "kustomizeVersion": "v5.0.4",\n  "serverVersion": {\n    "gitVersion": "v1.28.8-eks-adc7111"\n  }\n}'
    )
    assert {(f.attribute, f.value) for f in printed(f"kubectl version{client} {flag}", text)} == {
        ("kubectl version", "1.29.3"),
        ("kubernetes version", "1.28.8-eks-adc7111"),
    }


def test_of_containers_by_a_template() -> None:
    def images(template: str, text: str) -> dict[str, str]:
        return {f.attribute: f.value for f in printed(f"docker ps --format '{template}'", text)}

    assert images(r"{{.Image}}\t{{.Names}}", "redis:7\tcache") == {"container cache": "redis:7"}
    text = "NAMES     STATUS        IMAGE\ncache     Up 2 weeks    redis:7"
    assert images(r"table {{.Names}}\t{{.Status}}\t{{.Image}}", text) == {"container cache": "redis:7"}
    assert not images("{{.Names}} {{.Image}}", "cache redis:7")
    assert not images(r"{{.ID}}\t{{.Image}}", "cache\tredis:7")
    assert not images("{{.Names}}", "cache")
