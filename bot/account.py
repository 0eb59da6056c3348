"""The OS account that this process runs as, by its number: what the environment says of it counts for nothing."""

from __future__ import annotations

import os
import pwd


def os_account() -> str:
    """Its name; the number where the account has none. `getpass.getuser` would believe LOGNAME."""
    number = os.getuid()
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:  # a container may run with any number
        return str(number)
