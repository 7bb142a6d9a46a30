"""Invitations to join a fleet: tokens that expire, admit a limited number of machines, and are stored only as digests.

A token is a secret and the SHA-256 of the enrolment server's certificate. A machine that joins can therefore verify the
server before it sends any data.
"""

import base64
import binascii
import fcntl
import hashlib
import json
import os
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from fslab.errors import UsageError
from fslab.fleet import certificates

SECRET_BYTES, FINGERPRINT_BYTES = 16, 32


@dataclass(frozen=True, slots=True)
class Invitation:
    """``secret``: 16 bytes; ``fingerprint``: SHA-256 of the fleet's certificate."""

    secret: bytes
    fingerprint: bytes

    def __str__(self) -> str:
        return base64.urlsafe_b64encode(self.secret + self.fingerprint).decode("ascii")

    @classmethod
    def of(cls, text: str) -> "Invitation":
        """Parse a token as ``str`` prints it. Raises UsageError if ``text`` is not a token."""
        try:
            content = base64.b64decode(text.strip(), altchars=b"-_", validate=True)
        except (binascii.Error, ValueError):
            content = b""
        if len(content) != SECRET_BYTES + FINGERPRINT_BYTES:
            raise UsageError(
                "is not an invitation",
                where="--token",
                hint="copy all 64 characters that fslab fleet invite printed",
            )
        return cls(content[:SECRET_BYTES], content[SECRET_BYTES:])


def invite(directory: Path, *, valid_s: float, machines: int) -> Invitation:
    """Create an invitation to the fleet in ``directory``, for ``machines`` machines, valid for ``valid_s`` seconds."""
    credentials = certificates.Credentials(directory=directory)
    token = Invitation(secrets.token_bytes(SECRET_BYTES), certificates.fingerprint(credentials.certificate))
    with _locked(directory) as kept:
        kept[_digest(token.secret)] = {"until": time.time() + valid_s, "machines": machines}
    return token


def accept(directory: Path, secret: bytes) -> bool:
    """Use an invitation for one machine. Returns whether it exists and has not expired."""
    with _locked(directory) as kept:
        found = kept.get(_digest(secret))
        if found is None:
            return False
        found["machines"] -= 1
        if found["machines"] <= 0:
            del kept[_digest(secret)]
        return True


@contextmanager
def _locked(directory: Path) -> Iterator[dict[str, dict[str, float]]]:
    """Lock the directory, yield the invitations that have not expired, by digest, and store them afterwards."""
    lock = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        path = directory / "invitations.json"
        known = json.loads(path.read_text("utf-8")) if path.is_file() else {}
        kept = {digest: each for digest, each in known.items() if each["until"] > time.time()}
        yield kept
        certificates.write(path, json.dumps(kept).encode(), 0o600)
    finally:
        os.close(lock)


def _digest(secret: bytes) -> str:
    return hashlib.sha256(secret).hexdigest()
