"""Encrypted files: ``NAME`` beside ``NAME.sealed``, never neither.

A sealed file is a header and chunks of 1 MiB, each encrypted and authenticated on its own with its number and
whether it is the last (the STREAM construction: V. T. Hoang, R. Reyhanitabar, P. Rogaway, D. Vizár: Online
Authenticated-Encryption and its Nonce-Reuse Misuse-Resistance, CRYPTO 2015), so chunks that are changed,
exchanged, left out or cut off are found before their content is written. The key of each file is derived from
the data key and 16 random bytes of the header; nothing else is encrypted with it.

Sealing writes a new file, decrypts what was written, renames it, and only then removes what was there.
A killed process leaves either file or both. A temporary file that a killed process leaves begins with a dot.
"""

from __future__ import annotations

import os
import stat
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from headway.errors import Damaged, Failure, UserError
from headway.report.atomic import replacing
from headway_plugins.security.protection.algorithms import BUFFER, CIPHERS, cipher_of, derived

SUFFIX = ".sealed"
_MAGIC = b"HWSEAL01"
#: Magic, number of the cipher, bytes of a chunk, salt, which key.
_HEADER = struct.Struct(">8sB3xI16s8s")
_ORDER = ("AES-128-GCM", "ChaCha20-Poly1305", "AES-256-GCM")
_TAG = 16


class Spent:
    """Bytes and seconds of a service."""

    def __init__(self) -> None:
        self.bytes = 0
        self.seconds = 0.0
        self.files = 0

    @contextmanager
    def on(self) -> Iterator[Spent]:
        """Count the seconds of what is inside."""
        began = time.monotonic()
        try:
            yield self
        finally:
            self.seconds += time.monotonic() - began

    def add(self, count: int) -> None:
        self.files += 1
        self.bytes += count


def sealed_name(path: Path) -> Path:
    return path.with_name(path.name + SUFFIX)


def seal(path: Path, secret: bytes, option: str, *, replace: bool = False) -> int:
    """Encrypt ``path`` to ``path.sealed`` and remove it; its bytes.

    ``replace``: over a sealed file that is there already. Raises :class:`HeadwayError`, and then ``path`` is
    as it was.
    """
    target = sealed_name(path)
    with _opened(path) as source:
        if not replace:
            not_there(target, "is there already; --replace seals over it")
        before = os.fstat(source.fileno())
        with replacing(target) as temporary:
            with _new(temporary) as out:
                count = _encrypt(source, out, secret, option, path)
                out.flush()
                os.fsync(out.fileno())
            with open(temporary, "rb") as written:
                if sum(len(chunk) for chunk in _chunks(written, secret, temporary)) != count:
                    raise Damaged(f"{target}: the written file differs from {path}; {path} is unchanged")
            if _stamp(os.stat(path)) != _stamp(before) or count != before.st_size:
                raise Failure(f"{path}: it changed while it was sealed; it is left as it is and not sealed")
            if not replace:
                not_there(target, "was made in the meantime")
        _settle(target)
    _remove(path)
    return count


def sealed_with(path: Path, secret: bytes) -> str:
    """The option by which ``path.sealed`` was encrypted. Raises :class:`HeadwayError`."""
    source = sealed_name(path)
    with _opened(source) as stream:
        return _header(stream, secret, source)[0]


def unseal(path: Path, secret: bytes, *, keep: bool = True, replace: bool = False) -> int:
    """Decrypt ``path.sealed`` to ``path``; its bytes.

    ``keep``: leave the sealed file. If ``path`` is there with the same content it stays; with another
    content it is refused unless ``replace``. Raises :class:`HeadwayError`; nothing is written then.
    """
    source = sealed_name(path)
    with _opened(source) as stream:
        there = os.path.lexists(path)
        if there and not replace:
            with _opened(path) as old:
                same = _same(_chunks(stream, secret, source), old)
            if same is None:
                raise UserError(
                    f"{path}: exists already and differs from the content of {source.name}; move one of the "
                    "two files away"
                )
            count = same
        else:
            count = 0
            with replacing(path) as temporary, _new(temporary) as out:
                for chunk in _chunks(stream, secret, source):
                    out.write(chunk)
                    count += len(chunk)
                out.flush()
                os.fsync(out.fileno())
            _settle(path)
    if not keep:
        _remove(source)
    return count


def _remove(path: Path) -> None:
    try:
        path.unlink()
    except OSError as error:
        raise Failure(f"{path}: cannot be removed: {error.strerror}") from error


def not_there(path: Path, why: str) -> None:
    """Raises :class:`UserError` if something is."""
    if os.path.lexists(path):
        raise UserError(f"{path}: {why}")


def _same(chunks: Iterator[bytes], old: BinaryIO) -> int | None:
    """Bytes, if the file holds the same."""
    count, same = 0, True
    for chunk in chunks:
        count += len(chunk)
        same = same and old.read(len(chunk)) == chunk
    return count if same and not old.read(1) else None


def _stamp(found: os.stat_result) -> tuple[int, int, int, int]:
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


@contextmanager
def _opened(path: Path) -> Iterator[BinaryIO]:
    try:
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        why = "it is a link, which is not followed" if path.is_symlink() else error.strerror
        raise UserError(f"{path}: cannot be read: {why}") from error
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        raise UserError(f"{path}: expected a file, found something else")
    with os.fdopen(file, "rb") as stream:
        yield stream


@contextmanager
def _new(path: Path) -> Iterator[BinaryIO]:
    """A file that no other user can read."""
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with os.fdopen(file, "wb") as stream:
        yield stream


def _settle(path: Path) -> None:
    """Its name is on the disk."""
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _nonce(number: int, last: bool) -> bytes:
    return number.to_bytes(11, "big") + (b"\x01" if last else b"\x00")


def _file_key(secret: bytes, option: str, salt: bytes) -> bytes:
    return derived(secret, f"file {option}", CIPHERS[option], salt)


def _identity(secret: bytes) -> bytes:
    return derived(secret, "identity of a data key", 8)


def _encrypt(source: BinaryIO, out: BinaryIO, secret: bytes, option: str, path: Path) -> int:
    salt = os.urandom(16)
    header = _HEADER.pack(_MAGIC, _ORDER.index(option), BUFFER, salt, _identity(secret))
    cipher = cipher_of(option, _file_key(secret, option, salt))
    out.write(header)
    count = number = 0
    chunk = source.read(BUFFER)
    while True:
        following = source.read(BUFFER) if len(chunk) == BUFFER else b""
        out.write(cipher.encrypt(_nonce(number, not following), chunk, header))
        count += len(chunk)
        number += 1
        if not following:
            return count
        chunk = following


def _header(stream: BinaryIO, secret: bytes, path: Path) -> tuple[str, bytes, bytes]:
    header = stream.read(_HEADER.size)
    if len(header) < _HEADER.size or not header.startswith(_MAGIC):
        raise Damaged(f"{path}: expected a file that headway sealed")
    _, number, size, salt, identity = _HEADER.unpack(header)
    if number >= len(_ORDER) or size != BUFFER:
        raise Damaged(f"{path}: its header is damaged, or a newer headway sealed it")
    if identity != _identity(secret):
        raise UserError(f"{path}: it was sealed with another data key than the given key")
    return _ORDER[number], salt, header


def _chunks(stream: BinaryIO, secret: bytes, path: Path) -> Iterator[bytes]:
    """What a sealed file holds, each chunk once it is known to be whole."""
    from cryptography.exceptions import InvalidTag

    option, salt, header = _header(stream, secret, path)
    cipher = cipher_of(option, _file_key(secret, option, salt))
    number, chunk = 0, stream.read(BUFFER + _TAG)
    while True:
        following = stream.read(BUFFER + _TAG) if len(chunk) == BUFFER + _TAG else b""
        try:
            yield cipher.decrypt(_nonce(number, not following), chunk, header)
        except InvalidTag as error:
            raise Damaged(
                f"{path}: it was changed or cut off since it was sealed (at byte {number * BUFFER} of "
                "its content)"
            ) from error
        if not following:
            return
        number, chunk = number + 1, following
