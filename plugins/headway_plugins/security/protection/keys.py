"""A user's key files, in a folder of their own.

``data.key`` and ``hmac.key`` hold 32 random bytes each, ``NAME.key`` a private and ``NAME.pub`` a public key
of a signature (PEM). Secret files have the mode 600. A file that other users may read or change, that belongs
to another user, or that is a link, is refused. So is a folder in which other users may put files.
"""

from __future__ import annotations

import hashlib
import os
import stat
from pathlib import Path
from typing import Any

from headway.errors import Failure, UserError
from headway.inputs.extras import need_security
from headway_plugins.security.measured import LEVELS
from headway_plugins.security.protection.algorithms import HMAC, derived, is_of, new_key

#: Option of a signature -> the name of its files.
NAMES = {option: option.lower() for option in LEVELS["authentication"] if option != HMAC}
DATA, SHARED = "data", "hmac"
SECRET_BYTES = 32
_LARGEST = 1 << 16


def default_folder() -> Path:
    """``~/.headway/keys``."""
    return Path.home() / ".headway" / "keys"


class Keys:
    """The keys of a folder, each read when it is needed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._known: dict[str, Any] = {}

    def data(self) -> bytes:
        """The secret from which files' keys are derived."""
        return self._secret(DATA)

    def signer(self, option: str) -> Any:
        """What signs. Raises :class:`UserError`."""
        return self._secret(SHARED) if option == HMAC else self._pair(option, private=True)

    def verifier(self, option: str) -> Any:
        """What verifies. Raises :class:`UserError`."""
        return self._secret(SHARED) if option == HMAC else self._pair(option, private=False)

    def has_signer(self, option: str) -> bool:
        return (self.folder / f"{SHARED if option == HMAC else NAMES[option]}.key").exists()

    def _secret(self, name: str) -> bytes:
        if name not in self._known:
            path = self.folder / f"{name}.key"
            found = _read(path, secret=True)
            if len(found) != SECRET_BYTES:
                raise UserError(f"{path}: expected {SECRET_BYTES} bytes, found {len(found)}")
            self._known[name] = found
        found_before: bytes = self._known[name]
        return found_before

    def _pair(self, option: str, *, private: bool) -> Any:
        from cryptography.exceptions import UnsupportedAlgorithm
        from cryptography.hazmat.primitives.serialization import load_pem_private_key, load_pem_public_key

        path = self.folder / f"{NAMES[option]}.{'key' if private else 'pub'}"
        if path.name not in self._known:
            text = _read(path, secret=private)
            try:
                key = load_pem_private_key(text, None) if private else load_pem_public_key(text)
            except (ValueError, TypeError, UnsupportedAlgorithm) as error:
                raise UserError(
                    f"{path}: expected a {'private' if private else 'public'} key of {option} as PEM without "
                    f"a password: {str(error).splitlines()[0] if str(error) else type(error).__name__}"
                ) from error
            if not is_of(option, key):
                raise UserError(f"{path}: expected a key of {option}, found {type(key).__name__}")
            self._known[path.name] = key
        return self._known[path.name]


def key_id(option: str, key: Any) -> str:
    """Which key it is, without saying what it is; the same for both halves of a pair."""
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    if isinstance(key, bytes):
        return derived(key, f"identity of {option}", 8).hex()
    public = key.public_key() if hasattr(key, "public_key") else key
    shown = public.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return hashlib.sha256(shown).hexdigest()[:16]


def make_keys(folder: Path) -> list[Path]:
    """Make what is not there yet, and leave what is. The files that were made; raises
    :class:`HeadwayError`."""
    from cryptography.hazmat.primitives.serialization import (
        Encoding,
        NoEncryption,
        PrivateFormat,
        PublicFormat,
    )

    need_security("headway security keys")
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise Failure(f"{folder}: cannot be made: {error.strerror}") from error
    _checked_folder(folder)
    made = []
    for name in (DATA, SHARED):
        path = folder / f"{name}.key"
        if not os.path.lexists(path):
            _write(path, os.urandom(SECRET_BYTES), 0o600)
            made.append(path)
    for option, name in NAMES.items():
        path = folder / f"{name}.key"
        if not os.path.lexists(path):
            key = new_key(option)
            if key is None:
                continue
            _write(path, key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()), 0o600)
            made.append(path)
        public = path.with_suffix(".pub")
        if not os.path.lexists(public):
            key = Keys(folder).signer(option)
            shown = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
            _write(public, shown, 0o644)
            made.append(public)
    return made


def _write(path: Path, content: bytes, mode: int) -> None:
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        file = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, mode)
        try:
            with os.fdopen(file, "wb") as stream:
                stream.write(content)
                stream.flush()
                os.fsync(stream.fileno())
            # Never over a key that was made meanwhile: what it protects would be lost.
            os.link(temporary, path)
        finally:
            os.unlink(temporary)
    except OSError as error:
        raise Failure(f"{path}: cannot be written: {error.strerror}") from error


def _checked_folder(folder: Path) -> None:
    found = os.stat(folder)
    if found.st_uid not in (os.geteuid(), 0):
        raise UserError(f"{folder}: expected a folder of this user, it belongs to {_who(found.st_uid)}")
    if found.st_mode & 0o022:
        raise UserError(
            f"{folder}: other users may put files there (mode {_mode(found)}); chmod 700 {folder}"
        )


def _read(path: Path, *, secret: bool) -> bytes:
    try:
        _checked_folder(path.parent)
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError as error:
        raise UserError(
            f"{path}: there is no such key; `headway security keys {path.parent}` makes keys"
        ) from error
    except OSError as error:
        why = "it is a link" if path.is_symlink() else error.strerror
        raise UserError(f"{path}: cannot be read: {why}") from error
    found = os.fstat(file)
    if not stat.S_ISREG(found.st_mode):
        os.close(file)
        raise UserError(f"{path}: expected a file, found something else")
    with os.fdopen(file, "rb") as stream:
        if found.st_uid != os.geteuid():
            raise UserError(f"{path}: expected a key of this user, it belongs to {_who(found.st_uid)}")
        if found.st_mode & (0o077 if secret else 0o022):
            what = "read or change it" if secret else "change it"
            raise UserError(
                f"{path}: other users may {what} (mode {_mode(found)}); chmod {'600' if secret else '644'} "
                f"{path}"
            )
        return stream.read(_LARGEST)


def _mode(found: os.stat_result) -> str:
    return f"{stat.S_IMODE(found.st_mode):o}"


def _who(number: int) -> str:
    import pwd

    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return f"user {number}"
