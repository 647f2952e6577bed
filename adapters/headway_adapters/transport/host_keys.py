"""Is it the machine that we mean? Host keys against known_hosts files or one pinned key.

There is no switch to accept a key unseen. The files are OpenSSH's: plain and hashed names,
wildcards, negation, ``[host]:port`` and ``@revoked``. Decision: lines of ``@cert-authority`` are
passed over, for host certificates are not checked; such a host needs a line or a pin of its own.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass

from headway.errors import Failure

DEFAULT_FILES = ("~/.ssh/known_hosts", "/etc/ssh/ssh_known_hosts")


def fingerprint(key: bytes) -> str:
    """``SHA256:...`` of a public key's bytes, as ssh-keygen prints it."""
    return "SHA256:" + base64.b64encode(hashlib.sha256(key).digest()).decode().rstrip("=")


def kind_of(key: bytes) -> str:
    """The key's type, such as ``ssh-ed25519``: its first field."""
    length = int.from_bytes(key[:4], "big")
    return key[4 : 4 + length].decode("ascii", errors="replace")


@dataclass(frozen=True)
class KnownKey:
    """One line of a known_hosts file."""

    names: tuple[str, ...]
    key: bytes
    revoked: bool
    #: File and line, for a person.
    place: str

    def about(self, name: str) -> bool:
        """Whether the line speaks of ``name`` (``host`` or ``[host]:port``)."""
        found = False
        for pattern in self.names:
            if pattern.startswith("!"):
                if _fits(pattern[1:], name):
                    return False
            elif _fits(pattern, name):
                found = True
        return found


def _fits(pattern: str, name: str) -> bool:
    if pattern.startswith("|1|"):
        try:
            salt, wanted = (base64.b64decode(part, validate=True) for part in pattern[3:].split("|"))
        except (ValueError, binascii.Error):
            return False
        return hmac.compare_digest(hmac.new(salt, name.encode(), hashlib.sha1).digest(), wanted)
    wild = "".join(".*" if c == "*" else "." if c == "?" else re.escape(c) for c in pattern.lower())
    return re.fullmatch(wild, name) is not None


def read_known_hosts(text: str, file: str) -> list[KnownKey]:
    """The lines of a known_hosts file; lines of another form are skipped, as OpenSSH does."""
    found = []
    for number, line in enumerate(text.splitlines(), start=1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        marker = words.pop(0) if words[0].startswith("@") else ""
        if marker not in ("", "@revoked") or len(words) < 3:
            continue
        try:
            key = base64.b64decode(words[2], validate=True)
        except (ValueError, binascii.Error):
            continue
        found.append(KnownKey(tuple(words[0].split(",")), key, bool(marker), f"{file}, line {number}"))
    return found


class HostKeys:
    """What is known about machines."""

    def __init__(self, files: Sequence[str] = (), pinned: str | None = None) -> None:
        """``files``: known_hosts files that must exist; none: the usual ones, where they exist.
        ``pinned``: the only key of the machine behind all hops, as fingerprint or public key."""
        self._files = tuple(files)
        self._pinned = pinned

    def _known(self, host: str, port: int) -> list[KnownKey]:
        name = host.lower() if port == 22 else f"[{host.lower()}]:{port}"
        return [line for line in self._lines() if line.about(name)]

    def _lines(self) -> list[KnownKey]:
        """Read anew at each connection: a key that was just added counts without a restart."""
        found: list[KnownKey] = []
        for file in self._files or DEFAULT_FILES:
            try:
                with open(os.path.expanduser(file), encoding="utf-8", errors="replace") as lines:
                    found += read_known_hosts(lines.read(), file)
            except OSError as error:
                if self._files or not isinstance(error, FileNotFoundError):
                    raise Failure(f"ssh.known_hosts: {file} cannot be read: {error.strerror}") from error
        return found

    def kinds(self, host: str, port: int, *, target: bool) -> list[str]:
        """The types of the keys that are known of a machine: to be asked for first."""
        if target and self._pinned is not None:
            return [] if self._pinned.startswith("SHA256:") else [self._pinned.split()[0]]
        return list(dict.fromkeys(kind_of(line.key) for line in self._known(host, port) if not line.revoked))

    def verify(self, host: str, port: int, key: bytes, *, target: bool) -> None:
        """Raises :class:`Failure` unless ``key`` is the machine's.

        ``target``: it is the machine behind all hops, whose key may be pinned.
        """
        shown = f"{kind_of(key)} {fingerprint(key)}"
        where = f"{host}:{port}"
        if target and self._pinned is not None:
            if self._pinned.startswith("SHA256:"):
                same = hmac.compare_digest(self._pinned.rstrip("="), fingerprint(key))
                wanted = self._pinned
            else:
                pinned = base64.b64decode(self._pinned.split()[1])
                same = hmac.compare_digest(pinned, key)
                wanted = f"{kind_of(pinned)} {fingerprint(pinned)}"
            if not same:
                raise Failure(
                    f"{where}: wrong host key: expected {wanted} (ssh.host_key), found {shown}. {_BEWARE} "
                    "If the new key is right, write the new key into ssh.host_key."
                )
            return
        known = self._known(host, port)
        for line in known:
            if line.revoked and hmac.compare_digest(line.key, key):
                raise Failure(f"{where}: its host key {shown} is revoked ({line.place}); not connected")
        valid = [line for line in known if not line.revoked]
        if any(hmac.compare_digest(line.key, key) for line in valid):
            return
        name = host if port == 22 else f"'[{host}]:{port}'"
        files = ", ".join(self._files or DEFAULT_FILES)
        if valid:
            wanted = " or ".join(f"{kind_of(k.key)} {fingerprint(k.key)} ({k.place})" for k in valid)
            raise Failure(
                f"{where}: the host key has changed: expected {wanted}, found {shown}. {_BEWARE} "
                f"If the new key is right, remove the old key with ssh-keygen -R {name} and add the new key."
            )
        pin = f'set ssh.host_key: "{fingerprint(key)}" or ' if target else ""
        raise Failure(
            f"{where}: unknown host key {shown}; {files} has no line about this machine. Compare the "
            f"fingerprint with the fingerprint that its administrator gives (there: ssh-keygen -lf "
            f"/etc/ssh/ssh_host_*.pub), then {pin}add the key to known_hosts: ssh-keyscan -p {port} {host}"
        )


_BEWARE = (
    "Either the machine was set up anew, or another machine answers in its place: ask its administrator."
)
