"""What stands where a secret would stand and is none: placeholders, words of prose, paths, small numbers."""

from __future__ import annotations

import re
from enum import StrEnum

_LONGEST = 200  # characters of a placeholder
_PLACEHOLDER = re.compile(
    r"""
    \[redacted: .*
  | [*xX•·.…?_\-\#]{2,} | [*…\#]
  | <[^>]*>? | \[[A-Za-z\ _:-]*\]? | \{[\w.\ -]*\}? | \{\{.* | \{%.* | @[\w.]+@ | __\w+__
  | \$\{[^}]*\}?.{0,3} | \$[A-Za-z_]\w*(?:[/:].*)? | \$env:\w+ | \$\(.* | %\w+% | %\([\w.]+\)[sd] | %[sdvqr]
  | (?:~|\.{1,2})?/[\w.@+-]+(?:/[\w.@+*-]*)+ | [A-Za-z]:\\\\?[\w\ .-]+\\.*
  | (?:file|env|vault|ssm|arn|secretsmanager|keyring):[\w/.:@-]+
  | (?:self|this|os|args|config|settings|process|env|request|req|opts|options|conf|ctx|params|var|local|module)[.\[].*
  | [A-Za-z_][\w.]*\(\)? | [a-z]+(?:[._]+[a-z]+)+[(\[].* | (?:Optional|Union|cast|getattr|getenv|input|len|str|bytes)[(\[].*
    """,
    re.VERBOSE,
)
# Words that follow "password:" in prose, in code and in files that configure where passwords are kept.
_PROSE = """
    true false null none nil yes no on off ok enabled disabled enable disable required optional invalid
    valid incorrect wrong expired expires failed failure missing mismatch empty unset set unknown denied
    accepted rejected error changed updated reset prompt string str int integer bool bytes text object
    undefined must should please enter your the a an and or if in is are was were for of to with from not
    be has have will can cannot needed unchanged never always hidden masked redacted omitted removed
    sensitive files compat systemd ldap sss nis db winbind authentication authorization login bearer
    basic digest negotiate type value name field input option secretstr optional[str] password_hash
    sha256 sha512 md5 bcrypt (none) n/a na tbd todo plaintext plain md5sum scram-sha-256 trust peer ident
    reject
"""
_WORDS = frozenset(_PROSE.split())
_NUMBER = re.compile(r"[-+]?[0-9][0-9.,_]*(?:%|[a-z]{1,2})?", re.ASCII | re.IGNORECASE)
_OPAQUE = re.compile(
    r"(?=.*[0-9])(?=.*[A-Za-z]).{6,} | .*[a-z][A-Z].* | .*[A-Z]{2}[a-z].* | .{16,}", re.VERBOSE | re.DOTALL
)
_NO_TOKEN = re.compile(
    r"[a-z][a-z0-9+.-]{1,12}://.* | v?[0-9]+(?:\.[0-9]+)+[\w.-]*", re.VERBOSE | re.IGNORECASE
)


class Kind(StrEnum):
    """What a rule takes for a secret at its place, from most to least."""

    ANY = "any"  # everything but a placeholder
    WORD = "word"  # no word of prose, no number of one or two digits
    LOOSE = "loose"  # no number of up to five digits either
    OPAQUE = "opaque"  # has to look made by a machine: letters with digits, mixed case, or long
    RANDOM = "random"  # opaque, with 16 characters or more and letters with digits


def is_secret(value: str, kind: Kind) -> bool:
    """Whether this value can be a secret. One of more than 200 characters always is.

    What is left alone is short, so that looking at it again from another keyword costs little.
    """
    if len(value) > _LONGEST:
        return True
    if not value or _PLACEHOLDER.fullmatch(value):
        return False
    if kind is Kind.ANY:
        return True
    word = value.casefold().strip(".!?:")
    if word in _WORDS:
        return False
    number = _NUMBER.fullmatch(value)
    if kind is Kind.WORD:
        return not (number and len(value) <= 2)
    if kind is Kind.LOOSE:
        return not (number and len(value) <= 5)
    if number and len(value) < 9:
        return False
    if _NO_TOKEN.fullmatch(value):
        return False
    if kind is Kind.RANDOM:
        return len(value) >= 16 and any(c.isdigit() for c in value) and any(c.isalpha() for c in value)
    return bool(number) or bool(_OPAQUE.fullmatch(value))
