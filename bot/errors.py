"""The errors people may see. The docstring is the default message; every message says what to do.

OpsthreadError
├── UsageError            wrong settings or words on the command line: exit status 2
│   ├── SettingsError     one or more settings are wrong; names each
│   └── InventoryError    hosts.yml is wrong; names each fault with its line
├── ModelError            the model gave no usable reply
│   ├── ModelUnavailable  busy, down or cut off: the turn can be tried again
│   └── ModelRefused      the endpoint refused the request: a person must change something
│       └── ContextTooLong  it was too long for the model: send less
├── HostError             a command could not be run on a host; nothing was sent
│   ├── HostKeyMismatch   the host's key is not the known one
│   └── HostUnreachable   no connection, or the log-in was refused
├── AccessDenied          this person may not do this, here
└── Refused               a request that cannot be taken as it is
"""

from __future__ import annotations


class OpsthreadError(Exception):
    """opsthread could not do that."""

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or (self.__doc__ or "").strip())


class UsageError(OpsthreadError):
    """Wrong usage; see --help."""


class SettingsError(UsageError):
    """A setting is wrong."""


class InventoryError(UsageError):
    """hosts.yml is wrong."""


class ModelError(OpsthreadError):
    """The model gave no usable reply."""


class ModelUnavailable(ModelError):
    """The model cannot be reached right now; try again, or say "continue" later."""


class ModelRefused(ModelError):
    """The model's endpoint refused the request; check OPENAI_BASE_URL, OPENAI_API_KEY and OPSTHREAD_MODEL."""


class ContextTooLong(ModelRefused):
    """The conversation is longer than the model takes; lower OPSTHREAD_MAX_TOKENS."""


class HostError(OpsthreadError):
    """The command could not be run on the host; nothing was sent."""


class HostKeyMismatch(HostError):
    """The host's key is not the known one; compare both and run `opsthread hosts trust`."""


class HostUnreachable(HostError):
    """The host cannot be reached."""


class AccessDenied(OpsthreadError):
    """You may not do this here."""


class Refused(OpsthreadError):
    """This request cannot be taken as it is."""
