"""The table: what loads, what an operator may add, and the digest that names it."""

from __future__ import annotations

import pytest

from bot.errors import SettingsError
from bot.policy.judge import judge
from bot.policy.paths import meets
from bot.policy.patterns import quick_pattern
from bot.policy.rules import Rules, load_rules
from storage.records import Decision

EXTRA = r"""
commands:
  appctl:
    opts: -v --json
    sub:
      status: {args: name?}
    bare: appctl needs a sub-command
    match: appctl status web
    not_match: appctl stop web
ask: [dmesg]
deny:
  '\bterraform +apply\b': infrastructure changes go through review
secrets: ['^/var/log/payments']
"""


def decide(command: str, rules: Rules) -> Decision:
    return judge(command, rules, host_name="h", sudo_allowed=False).decision


def test_the_table_is_read_once_and_knows_many_programs() -> None:
    rules = load_rules()
    assert load_rules() is rules
    assert len(rules.commands) > 300
    assert len(rules.digest) == 64


def test_an_operator_adds_programs_and_tightens() -> None:
    rules = load_rules(EXTRA)
    assert decide("appctl status web", rules) is Decision.ALLOW
    assert decide("appctl stop web", rules) is Decision.ASK
    assert decide("dmesg -T", load_rules()) is Decision.ALLOW
    assert decide("dmesg -T", rules) is Decision.ASK
    assert decide("terraform apply", rules) is Decision.DENY
    assert decide("cat /var/log/payments.log", rules) is Decision.ASK
    assert decide("cat /var/log/pay*.log", rules) is Decision.ASK
    assert decide("rm -rf /", rules) is Decision.DENY
    assert rules.digest != load_rules().digest


@pytest.mark.parametrize(
    "extra",
    [
        "deny: {}",
        "deny:",
        "secrets: []",
        "ask: []\ncommands: {}\ndangerous: {}",
        "dangerous: {programs: {}}\n",
        "dangerous: {programs: {rm: {}}}",
        "dangerous: {text: {}, programs: {reboot: {never: matches}}}",
        "deny: {never: matches}",
        "secrets: ['never']",
        "commands: {appctl: {whole: echo, sudo: true}}",
        "ask: [rm, cat, sudo, timeout, curl]",
    ],
)
def test_nothing_in_an_operators_file_loosens_ours(extra: str) -> None:
    rules = load_rules(extra)
    ours = load_rules()
    assert rules.deny[: len(ours.deny)] == ours.deny
    assert rules.dangerous_text[: len(ours.dangerous_text)] == ours.dangerous_text
    assert all(rules.dangerous[name][: len(said)] == said for name, said in ours.dangerous.items())
    assert rules.secrets.pattern.startswith(ours.secrets.pattern)
    assert rules.roots == ours.roots
    for command in ("rm -rf /", "curl http://169.254.169.254/", "LD_PRELOAD=/x ls", ":(){ :|:& };:"):
        assert decide(command, rules) is Decision.DENY
    for command in (
        "cat /etc/shadow",
        "rm x",
        "sudo rm x",
        "cat /proc/1/environ",
        "appctl > x",
        "bash -c id",
    ):
        assert decide(command, rules) is Decision.ASK
    for command in ("rm -rf /tmp/x", "reboot"):
        assert judge(command, rules, host_name="h", sudo_allowed=False).danger


def test_an_operator_marks_more_commands_dangerous() -> None:
    rules = load_rules(
        "dangerous: {programs: {appctl reboot: {' wipe ': loses the app}}, text: {'prod-db': the main database}}"
    )

    def why(command: str) -> str:
        return judge(command, rules, host_name="h", sudo_allowed=False).danger

    assert why("sudo appctl -f wipe") == "appctl: loses the app"
    assert why("appctl status") == ""
    assert why("reboot now") == "reboot: stops the machine"
    assert why("ssh prod-db uptime") == "the main database"


@pytest.mark.parametrize(
    "pattern",
    [
        r"\bterraform +apply\b",
        "^/srv/.*/private/",
        r"rm +-rf +/srv",
        "a{1,12}",
        "(?i)drop|truncate",
        r"foo(?= bar\b)",
        "[a-z]+x",
    ],
)
def test_plain_patterns_of_an_operator_are_taken_and_quick(pattern: str) -> None:
    found = quick_pattern(pattern, "here")
    for text in (pattern * 100, "rm " * 600, " " * 2000, "/srv/" * 400, "aaaax" * 400):
        found.search(text[:2000])


@pytest.mark.parametrize(
    ("extra", "said"),
    [
        ("commands: {bash: {}}", "bash"),
        ("commands: {ls: {}}", "ls"),
        ("commands: {rm: {args: path*}}", "rm"),
        ("allow: [rm]", "allow is not a key"),
        ("commands: {x: {option: -a}}", "x: option is not a key"),
        ("commands: {x: {args: wrong}}", "wrong is not a kind"),
        ("commands: {x: {opts: '-a:wrong'}}", "wrong is not a kind"),
        ("commands: {x: {check: wrong}}", "wrong is not a checker"),
        ("commands: {x: {match: x --y}}", "`x --y` should run by itself"),
        ("commands: {x: {opts: -y, not_match: x -y}}", "`x -y` should not run by itself"),
        ("commands: {'': {}}", "not a program's plain name"),
        ("commands: {/opt/evil/cat: {args: path*}}", "not a program's plain name"),
        ("commands: {./x: {}}", "not a program's plain name"),
        ("commands: {true: {}}", "not a program's plain name"),
        ("commands: [x]", "commands must be a mapping"),
        ("commands: {timeout: {}}", "timeout runs other programs"),
        ("commands: {bash5.2: {}}", "bash5.2 runs other programs"),
        ("commands: {busybox.static: {}}", "runs other programs"),
        ("commands: {sudo-rs: {}}", "runs other programs"),
        ("commands: {python3.15: {args: path*}}", "runs other programs"),
        ("commands: {lua5.4: {}}", "runs other programs"),
        ("commands: {mkfs.ext4: {}}", "runs other programs or writes"),
        ("commands: {sort-full: {}}", "sort by another name"),
        ("commands: {a: {}}\ncommands: {b: {}}", "commands is there twice"),
        ("commands: {x: {opts: -a, opts: -b}}", "opts is there twice"),
        ("ask: dmesg", "ask must be a list, such as [dmesg]"),
        ("ask: ['ls -l /']", "not a program's plain name"),
        ("ask: [1]", "not a program's plain name"),
        ("roots: ['/.*']", "roots is not a key"),
        ("globs: ['.*']", "globs is not a key"),
        ("names: []", "names is not a key"),
        ("secrets: '^/x'", "secrets must be a list"),
        ("secrets: ['(?i)x']", "without flags"),
        ("secrets: [1]", "put the pattern in quotes"),
        ("secrets: ['(a+)+$']", "a repeat of a group"),
        ("secrets: ['(?:a|ab)*$']", "a repeat of a group"),
        ("deny: {'(.*)*x': y}", "a repeat of a group"),
        ("deny: {'.*x.*y.*z': y}", "more than one open-ended repeat"),
        ("deny: {'a+a+a+b': y}", "two repeats side by side"),
        ("deny: {'(a+)b\\1': y}", "a back reference"),
        ("deny: {'(?:[a-z]{1,99}){1,99}': y}", "a repeat of a group"),
        ("deny: {x: }", "x has no reason"),
        ("dangerous: [x]", "dangerous must be a mapping"),
        ("dangerous: {x: {}}", "x is not a key; use programs, text"),
        ("dangerous: {text: [x]}", "dangerous: text must map"),
        ("dangerous: {text: {'(a+)+': x}}", "a repeat of a group"),
        ("dangerous: {programs: {appctl: [x]}}", "dangerous: appctl must map"),
        ("dangerous: {programs: {/x/appctl: {x: y}}}", "not a program's plain name"),
        ("deny: {'(': x}", "not a regular expression"),
        ("secrets: ['(']", "not a regular expression"),
        ("deny: [x]", "deny must map"),
        ("- x", "must be a mapping"),
        ("a: [", "not YAML"),
    ],
)
def test_a_wrong_operator_file_is_named_with_its_entry(extra: str, said: str) -> None:
    with pytest.raises(SettingsError) as error:
        load_rules(extra)
    assert said in str(error.value)
    assert "OPSTHREAD_POLICY" in str(error.value)


@pytest.mark.parametrize(
    ("one", "other", "wanted"),
    [
        ("env?ron", "environ", True),
        ("env[i]ron", "environ", True),
        ("m?m", "mem", True),
        ("*", "mem", True),
        ("sha*", "shadow", True),
        ("*.log", "shadow", False),
        ("*.k?y", "*.key", True),
        ("a*b*c", "*z*", True),
        ("abc", "abd", False),
        ("a*", "*b", True),
        ("", "*", True),
        ("[ab]x", "ax", True),
        ("stat*", "environ", False),
    ],
)
def test_globs_are_judged_by_whether_they_can_meet_a_name(one: str, other: str, wanted: bool) -> None:
    assert meets(one, other) is wanted
    assert meets(other, one) is wanted
