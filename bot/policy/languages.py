"""Checkers for the small languages that stand in arguments: awk, sed and jq."""

from __future__ import annotations

import re

from bot.policy.awk_growth import check_growth
from bot.policy.kinds import check_kind, check_pattern
from bot.policy.lexer import Word, listed
from bot.policy.match import read_options
from bot.policy.spec import NotProved, Options, Scene

_AWK_NEVER = re.compile(
    r"(?<![A-Za-z_])system(?![A-Za-z0-9_])|getline|ENVIRON|PROCINFO|SYMTAB|FUNCTAB|ARGV|ARGC|ARGIND|close|fflush|func|while|\bdo\b|srand|@"
    r"|[0-9]{8}|\bRS\b|\bBINMODE\b|\bextension\b|%[^a-zA-Z%]*(?:[0-9]{4}|\*)"
    # A field far out, or one whose number is worked out, may take all memory when it is written.
    r"|\$ *\(? *[0-9]{4}|\bNF *[-+*/%^]?=(?!=)|\bNF(?:\+\+|--)|\$ *\([^)]*\) *[-+*/%^]?=(?![=~])"
)
_AWK_LOOP = re.compile(
    r"\bfor *\( *(?:[a-zA-Z_]\w* +in +[a-zA-Z_]\w*"
    r"|(?P<n>[a-zA-Z_]\w*) *= *[0-9]{1,3} *; *(?P=n) *<=? *(?:NF|NR|[0-9]{1,6}) *; *(?P=n)\+\+) *\)"
)
# In parentheses > compares. No quote and no slash: so no text or pattern can end in there.
_AWK_IF = re.compile(r"\bif *\([^()\"/]*\)")
_AWK = Options(values={"-F": "text", "-v": "text"})
_SED_ADDRESS = r"(?:[0-9]{1,9}(?:~[0-9]{1,6})?|\$|/(?:[^/\\]|\\.)*/I?)"
_GAP = " {0,4}"  # open-ended gaps side by side would take n³ steps over a run of spaces
_SED_COMMAND = re.compile(
    rf"{_GAP}(?:{_SED_ADDRESS}(?:{_GAP},{_GAP}(?:{_SED_ADDRESS}|[+~][0-9]{{1,6}}))?)?"
    rf"{_GAP}!?{_GAP}(?:[pdq=]|[{{]{_GAP}[pdq=]{_GAP}[}}]){_GAP}"
)
_SED_REPLACE = re.compile(
    "|".join(
        rf"(?:{_SED_ADDRESS}(?:,{_SED_ADDRESS})?)? *s{cut}{piece}{cut}{piece}{cut}[gpI0-9]{{0,6}}"
        for cut, piece in ((re.escape(d), rf"(?:[^{d}\\]|\\.)*") for d in "/|,#:")
    )
)
_SED = Options(
    flags=listed("-n -E -r -s -u --quiet --silent --regexp-extended"),
    values={"-e": "text", "--expression": "text"},
)
_JQ = Options(
    flags=listed("-r -c -s -S -e -M -a -j --raw-output --compact-output --slurp --sort-keys --monochrome-output "
        "--ascii-output --exit-status --tab")
)  # fmt: skip
_JQ_WORDS = listed(
    "length keys keys_unsorted values select map map_values test contains inside has tostring tonumber tojson fromjson "
    "sort sort_by group_by unique unique_by add min max min_by max_by first last to_entries from_entries with_entries "
    "type not and or if then elif else end empty null true false join split startswith endswith ascii_downcase "
    "ascii_upcase any all flatten reverse floor round sqrt abs del paths leaf_paths index indices ltrimstr rtrimstr "
    "now todate fromdate strftime"
)
_JQ_TEXT = re.compile(r'"[^"\\]*"')
_JQ_KEYS = re.compile(r"\{ *[A-Za-z_]\w*(?: *, *[A-Za-z_]\w*)* *\}|\b[A-Za-z_]\w* *:")
_JQ_FAR = re.compile("[0-9]{6}")
_JQ_SETS = re.compile("(?<![=!<>])=(?!=)")
_JQ_FIELD = re.compile(r"\.[A-Za-z_]\w*")


def awk(words: tuple[Word, ...], scene: Scene) -> tuple[Word, ...]:
    """`-F`, `-v` and one program that neither writes, runs, nor reads anything but its files."""
    at = 0
    while at < len(words) and words[at].text.startswith("-"):
        name = words[at].text[:2]
        glued = words[at].text[2:]
        if name not in _AWK.values or (not glued and at + 1 == len(words)):
            raise NotProved(f"awk {words[at].text} is not known to only read")
        value = glued or words[at + 1].text
        if name == "-v" and (not re.fullmatch(r"(?:[a-z]\w*|O?FS)=(?:[^\\@]|\\t)*", value)):
            raise NotProved("awk -v takes name=value with a lower-case name")
        at += 1 if glued else 2
    if at == len(words) or words[at].glob:
        raise NotProved("awk lacks a quoted program")
    awk_program(words[at].text)
    check_pattern(_AWK_LOOP.sub(" ", words[at].text))
    for word in words[at + 1 :]:
        check_kind("file", word, scene)
    return words


def awk_program(program: str) -> None:
    """Raises NotProved for a program that could write, run or never end.

    `>` and `|` send output somewhere only in an action, so behind the first brace only `>=` and `||` pass.
    """
    if found := _AWK_NEVER.search(program):
        raise NotProved(f"awk: {found[0]} is not known to be harmless")
    if re.search(r"\bfor\b", _AWK_LOOP.sub("", program)):
        raise NotProved("awk: only loops over fields or keys are known to end")
    check_growth(program, _AWK_LOOP)
    action = _AWK_IF.sub("", program[program.find("{") :] if "{" in program else "")
    if ">" in action.replace(">=", "") or "|" in action.replace("||", ""):
        raise NotProved(
            "awk: > or | in an action may write to a file or a program; put comparisons before the {"
        )


def sed(words: tuple[Word, ...], scene: Scene) -> tuple[Word, ...]:
    """Print, delete, quit, number and one replacement; never `w`, `e`, `r` or `-i`."""
    given = read_options(words, _SED, scene)
    scripts = [value.text for name, value in given.options if value is not None]
    files = list(given.words)
    if any(value.glob for _, value in given.options if value is not None):
        raise NotProved("sed: a glob as a script; quote it")
    if not scripts:
        if not files or files[0].glob:
            raise NotProved("sed lacks a quoted script")
        scripts = [files.pop(0).text]
    for script in scripts:
        sed_script(script)
        check_pattern(script.replace("\\1", ""))  # in a replacement it is what was matched
    for word in files:
        check_kind("file", word, scene)
    return words


def sed_script(script: str) -> None:
    """Raises NotProved for anything but addresses with p, d, q or =, or one s///."""
    if _SED_REPLACE.fullmatch(script):
        return
    at = 0
    while True:
        found = _SED_COMMAND.match(script, at)
        if not found:
            raise NotProved("sed is known to only read with p, d, q, = after addresses, or one s///g")
        at = found.end()
        if at == len(script):
            return
        if script[at] != ";":
            raise NotProved("sed: commands are separated by ; and each is p, d, q or =")
        at += 1


def jq(words: tuple[Word, ...], scene: Scene) -> tuple[Word, ...]:
    """A filter of known words over files; no environment, no other files, no endless generators."""
    given = read_options(words, _JQ, scene)
    if not given.words or given.words[0].glob:
        raise NotProved("jq lacks a quoted filter")
    program = _JQ_TEXT.sub(" ", given.words[0].text)
    program = _JQ_KEYS.sub(" ", _JQ_FIELD.sub(" ", program))
    if re.search(r"\* *[0-9]{5}|[0-9]{5} *\*|\*.*\*", program):
        raise NotProved("jq: a text times a large number takes all memory")
    if _JQ_FAR.search(program) and _JQ_SETS.search(program):
        raise NotProved("jq: setting a place far out takes all memory")
    for text in _JQ_TEXT.findall(given.words[0].text):
        check_pattern(text)
    if bad := re.search(r"[\\\"$@#?]{2}|[\\\"$@#]", program):
        raise NotProved(f"jq: {bad[0]} is not known to be harmless")
    for name in re.findall(r"[A-Za-z_]\w*", program):
        if name not in _JQ_WORDS:
            raise NotProved(f"jq: {name} is not known to be harmless")
    for word in given.words[1:]:
        check_kind("file", word, scene)
    return words
