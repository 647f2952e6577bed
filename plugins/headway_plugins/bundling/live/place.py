"""A bundle's directory: on a file system that the user's machine and all nodes share, for its user alone.

=============  ==============================================================================
bundle.json    what was asked for (:class:`.specification.Specification`)
state.db       what must outlive the manager (:mod:`.store`)
key            the secret of the link, mode 0600
address        where the manager listens at present
manager.log    what the manager has to say
images/        checkpoints, unless the handler's option ``directory`` names another place
ends/          exit codes that workers wrote down: LAUNCH.PROCESS
result.json    the exit code, once it is known
subjob-N.out   the output of what ran in subjob N
=============  ==============================================================================
"""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import TypeVar

import msgspec

from headway.errors import Failure, UserError
from headway_plugins.bundling.live.specification import Specification

_Kind = TypeVar("_Kind")
_ID = re.compile(r"b[0-9a-f]{8}")
_END = re.compile(r"([0-9]{1,9})\.([0-9]{1,9})")


class Result(msgspec.Struct, frozen=True):
    """How a bundle came to its end."""

    exit_code: int
    message: str
    #: The job of the original request, which passes the exit code on.
    placeholder: str = ""


def root(environment: Mapping[str, str]) -> Path:
    """Where a user's bundles are: ``HEADWAY_BUNDLES``, else ``~/.headway/bundles``."""
    named = environment.get("HEADWAY_BUNDLES")
    return Path(named).absolute() if named else Path.home() / ".headway" / "bundles"


def all_of(directory: Path) -> list[Place]:
    """The bundles in a user's directory, the oldest first."""
    try:
        names = sorted(name for name in os.listdir(directory) if _ID.fullmatch(name))
    except FileNotFoundError:
        return []
    except OSError as error:
        raise Failure(f"{directory}: {error.strerror}") from error
    found = [place for name in names if (place := Place(directory / name)).specified]
    return sorted(found, key=lambda place: (place.made, place.path.name))


def find(directory: Path, name: str) -> Place:
    """A bundle by its id. Raises :class:`UserError` if there is none."""
    if _ID.fullmatch(name) is not None and Place(directory / name).specified:
        return Place(directory / name)
    known = ", ".join(place.path.name for place in all_of(directory)) or "none"
    raise UserError(f"expected the id of a bundle in {directory}, found {name[:40]!r}. Known: {known}")


class Place:
    """A bundle's directory."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.database = path / "state.db"
        self.key = path / "key"
        self.log = path / "manager.log"
        self.images = path / "images"
        self.ends = path / "ends"
        self._address = path / "address"
        self._specification = path / "bundle.json"
        self._result = path / "result.json"

    @property
    def specified(self) -> bool:
        return self._specification.is_file()

    @property
    def made(self) -> float:
        """When it was submitted, absolute seconds; 0: that cannot be read."""
        try:
            return self._specification.stat().st_mtime
        except OSError:
            return 0.0

    @classmethod
    def make(cls, directory: Path) -> Place:
        """Make a new directory, with an id and a key. Raises :class:`Failure`."""
        place = cls(directory / f"b{secrets.token_hex(4)}")
        try:
            directory.mkdir(parents=True, exist_ok=True, mode=0o700)
            place.path.mkdir(mode=0o700)
            place.images.mkdir(mode=0o700)
            place.ends.mkdir(mode=0o700)
            _write(place.key, secrets.token_hex(32).encode())
        except OSError as error:
            # Half a directory would never be found again.
            shutil.rmtree(place.path, ignore_errors=True)
            raise Failure(f"{place.path}: a bundle's directory cannot be made: {error.strerror}") from error
        return place

    def check(self) -> None:
        """Raise :class:`UserError` unless it is this user's alone: any writer there can run programs
        as this user."""
        try:
            found = self.path.stat()
        except OSError as error:
            raise UserError(f"{self.path}: no bundle is there: {error.strerror}") from error
        if found.st_uid != os.geteuid() or stat.S_IMODE(found.st_mode) & 0o077:
            raise UserError(
                f"{self.path}: expected a directory of this user's, mode 0700, found one of user "
                f"{found.st_uid}, mode {stat.S_IMODE(found.st_mode):04o}"
            )

    def specify(self, specification: Specification) -> None:
        """Raises :class:`Failure`."""
        # Words and variables may be any bytes, which this JSON holds as half surrogates.
        self._put(self._specification, json.dumps(msgspec.to_builtins(specification)).encode())

    def specification(self) -> Specification:
        """Raises :class:`Failure` if it cannot be read."""
        return self._read(self._specification, Specification)

    def announce(self, address: str) -> None:
        """Write down where the manager listens. Raises :class:`Failure`."""
        self._put(self._address, address.encode())

    @property
    def address(self) -> str:
        """Where it listens; "" if no manager ever did."""
        try:
            return self._address.read_text().strip()
        except OSError:
            return ""

    def finish(self, result: Result) -> None:
        """Raises :class:`Failure`."""
        self._put(self._result, json.dumps(msgspec.to_builtins(result)).encode())

    def _put(self, path: Path, text: bytes) -> None:
        try:
            _write(path, text)
        except OSError as error:
            raise Failure(f"{path}: cannot be written: {error.strerror}") from error

    def result(self) -> Result | None:
        """How it came to its end; None: it has not."""
        return self._read(self._result, Result) if self._result.is_file() else None

    def _read(self, path: Path, kind: type[_Kind]) -> _Kind:
        try:
            return msgspec.convert(json.loads(path.read_bytes()), type=kind)
        except (OSError, ValueError, RecursionError) as error:
            raise Failure(f"{path}: cannot be read: {error}") from error

    def end_of(self, launch: int, process: int, code: int) -> None:
        """A process of a launch has ended."""
        _write(self.ends / f"{launch}.{process}", str(code).encode())

    def ends_of(self, launch: int) -> dict[int, int]:
        """Process -> exit code, of the ended processes of a launch. Raises :class:`Failure`."""
        found: dict[int, int] = {}
        try:
            for path in self.ends.iterdir():
                name = _END.fullmatch(path.name)
                if name is not None and int(name[1]) == launch and (text := path.read_text()).isdecimal():
                    found[int(name[2])] = int(text)
        except (OSError, ValueError) as error:
            raise Failure(f"{self.ends}: cannot be read: {error}") from error
        return found

    def output(self, number: int) -> Path:
        """Where subjob ``number`` writes."""
        return self.path / f"subjob-{number}.out"


def _write(path: Path, text: bytes) -> None:
    """All of it or nothing, readable by the owner alone."""
    fresh = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
    opened = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(opened, "wb") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(path)
    except OSError:
        fresh.unlink(missing_ok=True)
        raise
