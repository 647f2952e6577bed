"""Which keys are offered to an SSH server.

With a key file, that key alone: servers end a connection after a few keys that they do not take.
Without one, the agent's keys, then the usual files of the user. No key's passphrase is ever asked
for; an encrypted key is used through the agent.
"""

from __future__ import annotations

import base64
import stat
from dataclasses import dataclass
from pathlib import Path

import paramiko
from cryptography.exceptions import UnsupportedAlgorithm

from headway.errors import Failure
from headway_adapters.transport.host_keys import fingerprint
from headway_adapters.transport.options import SshOptions

USUAL_FILES = ("~/.ssh/id_ed25519", "~/.ssh/id_ecdsa", "~/.ssh/id_rsa")
#: Servers take six keys a connection by default (MaxAuthTries).
MOST = 6


@dataclass(frozen=True)
class Identity:
    """A key, and what to call it."""

    key: paramiko.PKey
    label: str


class _Encrypted(Exception):
    """The file is a private key with a passphrase."""


def identities(options: SshOptions, agent: paramiko.Agent | None) -> list[Identity]:
    """The keys to offer, in order, with ``agent``'s if there is one.

    Raises :class:`Failure` when the key file cannot be used, and when there is no key at all.
    """
    offered = [_of_agent(key) for key in (agent.get_keys() if agent is not None else ())]
    if options.key_file is not None:
        return _of_key_file(options.key_file, offered)
    passed_over = []
    for name in USUAL_FILES:
        path = Path(name).expanduser()
        if path.exists():
            try:
                offered.append(Identity(_load(path), str(path)))
            except _Encrypted:
                passed_over.append(f"{path} has a passphrase")
            except Failure as error:
                passed_over.append(str(error))
    known = {identity.key.asbytes(): identity for identity in reversed(offered)}
    unique = list(reversed(known.values()))
    if not unique:
        why = "; ".join(passed_over) or f"none of {', '.join(USUAL_FILES)} exists"
        asked = "the SSH agent has no key" if options.agent else "ssh.agent is false"
        raise Failure(f"no SSH key for the log-in to {options.host}: {asked}; {why}. Set ssh.key_file.")
    return unique[:MOST]


def _of_agent(key: paramiko.AgentKey) -> Identity:
    return Identity(key, f"agent's {key.comment or key.get_name()}")


def _of_key_file(file: str, agents: list[Identity]) -> list[Identity]:
    path = Path(file).expanduser()
    try:
        return [Identity(_load(path), str(path))]
    except _Encrypted:
        public = _public_part(path)
        found = [identity for identity in agents if public in (None, identity.key.asbytes())]
        if found:
            return found[:MOST]
        raise Failure(
            f"ssh.key_file: {path} has a passphrase, and no SSH agent (SSH_AUTH_SOCK, ssh.agent) offers it. "
            f"Run ssh-add {path} where headway finds the agent, or use a key without a passphrase that "
            "only headway's user can read."
        ) from None


def _load(path: Path) -> paramiko.PKey:
    try:
        status = path.stat()
        if status.st_mode & (stat.S_IRWXG | stat.S_IRWXO):
            mode = stat.S_IMODE(status.st_mode)
            raise Failure(f"ssh.key_file: {path} is open to others (mode {mode:o}): chmod 600 {path}")
        return paramiko.PKey.from_path(path)
    except (TypeError, paramiko.PasswordRequiredException) as error:
        # What cryptography and paramiko say of a key that needs a passphrase.
        raise _Encrypted from error
    except OSError as error:
        raise Failure(f"ssh.key_file: {path} cannot be read: {error.strerror or error}") from error
    except (ValueError, UnsupportedAlgorithm, paramiko.SSHException, paramiko.UnknownKeyType) as error:
        raise Failure(
            f"ssh.key_file: expected a private key in {path}, found none that can be used"
        ) from error


def _public_part(path: Path) -> bytes | None:
    """The key's public half from the file beside it; None when that says nothing."""
    try:
        words = Path(f"{path}.pub").read_text(encoding="utf-8", errors="replace").split()
        return base64.b64decode(words[1], validate=True)
    except (OSError, ValueError, IndexError):
        return None


def described(identity: Identity) -> str:
    """For a person."""
    return f"{identity.label} ({identity.key.get_name()} {fingerprint(identity.key.asbytes())})"
