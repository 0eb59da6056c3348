"""Pure: heads of the chain signed with Ed25519; the public key is enough to check them.

The private key is derived from OPSTHREAD_SECRET_KEY and never stored. The derivation is slow on purpose:
the public key lies open, and a weak secret could be guessed against it.
"""

from __future__ import annotations

import base64
import binascii
from hashlib import scrypt

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from storage.audit.digest import canonical
from storage.audit.heads import Head

_SCHEME = "ed25519:"
_SALT = b"opsthread audit head 1"  # constant, so that every process of an installation has the same key


class Signer:
    """Signs heads. The same secret gives the same key everywhere. Takes about 50 ms to make."""

    def __init__(self, secret: str) -> None:
        seed = scrypt(secret.encode(), salt=_SALT, n=2**14, r=8, p=1, maxmem=2**26, dklen=32)
        self._private = Ed25519PrivateKey.from_private_bytes(seed)
        self.public = _SCHEME + base64.b64encode(self._private.public_key().public_bytes_raw()).decode()

    def sign(self, head: Head) -> Head:
        """The head with our key and signature; what these were before does not matter."""
        signature = base64.b64encode(self._private.sign(message(head))).decode()
        return Head(head.link, head.hash, head.at, self.public, signature)


def message(head: Head) -> bytes:
    """What is signed: a line that says what it is, then canonical JSON of link, hash and time."""
    return _SALT + b"\n" + canonical({"link": head.link, "hash": head.hash, "at": head.at})


def valid(head: Head) -> bool:
    """Whether the signature is that of the key which the head names. Whose key it is, the caller knows."""
    key = _public(head.key)
    try:
        signature = base64.b64decode(head.signature, validate=True)
    except (binascii.Error, ValueError):
        return False
    if key is None:
        return False
    try:
        key.verify(signature, message(head))
    except InvalidSignature:
        return False
    return True


def is_public_key(key: str) -> bool:
    """Whether the text is a public key as heads name it, `ed25519:<base64>`."""
    return _public(key) is not None


def _public(key: str) -> Ed25519PublicKey | None:
    try:
        raw = base64.b64decode(key.removeprefix(_SCHEME), validate=True)
        return Ed25519PublicKey.from_public_bytes(raw) if key.startswith(_SCHEME) else None
    except (binascii.Error, ValueError):
        return None
