"""Which commands change something, and when a conclusion without a named cause still makes a case."""

from __future__ import annotations

import pytest

from bot.memory import Found, Heard, extract
from bot.memory.cases import changes
from storage.records import Role


@pytest.mark.parametrize(
    "command",
    [
        "'postqueue' -p",
        "'crontab' -l",
        "'mount'",
        "'swapon' --show",
        "'iptables' -nvL",
        "'sudo' -n iptables -S",
        "'nft' list ruleset",
        "'ufw' status",
        "'firewall-cmd' --list-all",
        "'certbot' certificates",
        "'certbot' renew --dry-run",
        "'docker-compose' logs api",
        "'ansible-playbook' site.yml --check",
        "'kill' -0 812",
    ],
)
def test_looking_is_no_change(command: str) -> None:
    assert not changes(command)


@pytest.mark.parametrize(
    "command",
    [
        "'postqueue' -f",
        "'crontab' /tmp/jobs",
        "'mount' -o remount,rw /",
        "'iptables' -D INPUT 3",
        "'certbot' renew",
        "'docker-compose' up -d",
        "'kill' 812",
        "'ansible-playbook' site.yml",
    ],
)
def test_a_change_is_one(command: str) -> None:
    assert changes(command)


def concluded(question: str, command: str, answer: str) -> tuple[Found, ...]:
    ran = Heard(Role.TOOL, "", host="web-1", command=command, exit_status=0)
    return extract([Heard(Role.USER, question, "U1"), ran, Heard(Role.ASSISTANT, answer)])


def test_what_is_said_before_a_fix_that_ran_is_the_cause() -> None:
    answer = "The agent had died on a full disk. I restarted it."
    (found,) = concluded("the graphs are empty", "'systemctl' restart agent", answer)
    assert "cause: The agent had died on a full disk" in found.text
    assert found.value.startswith("fixed")


def test_advice_beside_a_state_is_no_case() -> None:
    answer = "The root disk is at 57 %. You could add a disk if you expect it to grow."
    assert not concluded("is the disk of web-1 full?", "'df' -h /srv", answer)
    assert not concluded(
        "please restart the agent", "'systemctl' restart agent", "It is restarted. I restarted it at 10:00."
    )
