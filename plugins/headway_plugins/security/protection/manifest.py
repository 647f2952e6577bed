"""Manifests: files with their sizes and digests, and signatures of that list.

``{"manifest": "<text>", "signatures": {"Ed25519": {"key": "..", "signature": ".."}}}``: what is signed is the
text, which is JSON again: ``{"format": 1, "files": [{"name": .., "bytes": .., "digests": {"SHA-256":
".."}}]}``. Names are relative to the manifest's folder. The submission of a job lists several digests and
signs with all keys, since the levels are chosen later.
"""

from __future__ import annotations

import base64
import binascii
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from headway.errors import Damaged, UserError
from headway.report.atomic import writing
from headway_plugins.security.protection.algorithms import DIGESTS, digest_of, is_signature, signature
from headway_plugins.security.protection.keys import Keys, key_id

_LARGEST = 1 << 28


class Listed(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A file."""

    name: str
    bytes: int
    digests: dict[str, str]


class _Body(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    format: int
    files: tuple[Listed, ...]


class _Signature(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    key: str
    signature: str


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    manifest: str
    signatures: dict[str, _Signature] = {}


class Manifest:
    """A manifest that was read, and is not trusted yet."""

    def __init__(self, path: Path, text: str, files: Sequence[Listed], signatures: Mapping[str, Any]) -> None:
        self.path = path
        self.files = tuple(files)
        self._text = text
        self._signatures = signatures

    @property
    def message(self) -> bytes:
        """What is signed."""
        return self._text.encode("utf-8")

    def where(self, listed: Listed) -> Path:
        return self.path.parent / listed.name

    def authenticate(self, option: str, keys: Keys) -> None:
        """Raises :class:`HeadwayError` unless it is signed by ``option`` with the key of the folder."""
        found = self._signatures.get(option)
        if found is None:
            signed = ", ".join(self._signatures) or "none"
            raise UserError(f"{self.path}: expected a signature by {option}, found {signed}; sign it again")
        key = keys.verifier(option)
        if found.key != key_id(option, key):
            raise UserError(
                f"{self.path}: its signature by {option} was made with another key than the key in "
                f"{keys.folder}"
            )
        try:
            given = base64.b64decode(found.signature, validate=True)
        except binascii.Error as error:
            raise Damaged(f"{self.path}: its signature by {option} is damaged") from error
        if not is_signature(option, key, self.message, given):
            raise Damaged(
                f"{self.path}: it differs from what was signed by {option}: it was changed, or is damaged"
            )

    def check(self, listed: Listed, option: str) -> int:
        """The bytes of a file that is as it is listed. Raises :class:`HeadwayError`."""
        path = self.where(listed)
        expected = listed.digests.get(option)
        if expected is None:
            there = ", ".join(listed.digests) or "none"
            raise UserError(f"{self.path}: {listed.name}: expected a digest by {option}, found {there}")
        try:
            digest, count = digest_of(path, option)
        except OSError as error:
            raise UserError(f"{path}: cannot be read: {error.strerror}") from error
        if count != listed.bytes:
            raise Damaged(f"{path}: expected {listed.bytes} bytes as {self.path.name} says, found {count}")
        if digest != expected:
            raise Damaged(
                f"{path}: its digest by {option} differs from the digest in {self.path.name}: it was changed"
            )
        return count


def read_manifest(path: Path) -> Manifest:
    """Raises :class:`HeadwayError`."""
    try:
        if path.stat().st_size > _LARGEST:
            raise UserError(f"{path}: expected a manifest, found {path.stat().st_size} bytes")
        content = path.read_bytes()
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}") from error
    try:
        file = msgspec.json.decode(content, type=_File)
        body = msgspec.json.decode(file.manifest, type=_Body)
    except msgspec.DecodeError as error:
        raise Damaged(f"{path}: expected a manifest of `headway security sign`: {error}") from error
    if body.format != 1:
        raise UserError(f"{path}: expected a manifest of format 1, found format {body.format}")
    return Manifest(path, file.manifest, body.files, file.signatures)


def list_files(paths: Iterable[Path], folder: Path, digests: Iterable[str] = DIGESTS) -> tuple[Listed, ...]:
    """Raises :class:`UserError` for a file that cannot be read."""
    names = tuple(digests)
    found = []
    for path in paths:
        made: dict[str, str] = {}
        count = 0
        for option in names:
            try:
                made[option], count = digest_of(path, option)
            except OSError as error:
                raise UserError(f"{path}: cannot be read: {error.strerror}") from error
        found.append(Listed(os.path.relpath(path.absolute(), folder.absolute()), count, made))
    return tuple(found)


def write_manifest(path: Path, files: Sequence[Listed], keys: Keys, options: Iterable[str]) -> None:
    """Signed by each of the options. Raises :class:`HeadwayError`, and then nothing is written."""
    text = msgspec.json.encode(_Body(1, tuple(files))).decode("utf-8")
    signatures = {}
    for option in options:
        key = keys.signer(option)
        signed = base64.b64encode(signature(option, key, text.encode("utf-8"))).decode("ascii")
        signatures[option] = _Signature(key_id(option, key), signed)
    with writing(path) as stream:
        stream.write(msgspec.json.encode(_File(text, signatures)).decode("utf-8") + "\n")
