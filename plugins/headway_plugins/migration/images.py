"""Images: where jobs and programs save themselves, and what is known of what is there.

``DIRECTORY/JOB/`` is a job's image, written by the job or by a program that dumps it, as its user;
``DIRECTORY/.headway/JOB.json`` is the daemon's own record of it: each file's size and SHA-256 when it was
confirmed. The directory may be open to all users if it has the sticky bit, like /tmp.

Users write the images, so they are read with care: no symbolic link is followed, only plain files
count, and a job's directory must belong to the job's user (or to the daemon).

An image is *complete* when the file ``complete`` in it (its name is an option) is newer than the request.
Its lines may have the form of ``sha256sum``; then the files are compared with them, which finds what was
damaged on its way to the disk. With no such file an image is complete once nothing in it has changed for
``settle`` seconds, and something did since the request.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import pwd
import re
import shutil
import stat
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

import msgspec

from headway.adapter import Check
from headway.errors import Failure

_RECORDS = ".headway"
_JOB = re.compile(r"[A-Za-z0-9][A-Za-z0-9._\[\]-]{0,99}")
_LINE = re.compile(r"([0-9a-f]{64})[ ][ *](.+)")
#: A list of checksums is read up to here, bytes.
_LONGEST_LIST = 1_000_000
#: Files of an image.
_MOST_FILES = 100_000
CHUNK = 1 << 20


class FileMark(msgspec.Struct, frozen=True):
    """A file of an image. ``size`` in bytes."""

    name: str
    size: int
    sha256: str


class Manifest(msgspec.Struct, frozen=True):
    """What was confirmed."""

    job: str
    method: str
    #: Absolute seconds.
    time: float
    files: tuple[FileMark, ...]

    @property
    def size(self) -> int:
        return sum(one.size for one in self.files)


class Unconfirmed(Exception):
    """An image is not complete yet."""


class Images:
    """The image directory. Its methods raise :class:`Failure` with what was expected and what was found."""

    def __init__(
        self,
        directory: Path,
        *,
        method: str,
        complete: str = "complete",
        settle: float = 2.0,
        keep: float = 7 * 86400.0,
        quota: int = 0,
        spare: int = 0,
        words: tuple[str, ...] = (),
    ) -> None:
        """``keep``: seconds that an image outlives its job. ``quota``: bytes of all images, ``spare``: bytes
        that stay free on the file system; 0: no such limit. ``words``: files that are no part of an image."""
        self._words = words
        self.directory = directory
        self._method = method
        self._complete = complete
        self._settle = settle
        self._keep = keep
        self._quota = quota
        self._spare = spare
        #: Job -> what the directory looked like when the request was made.
        self._asked: dict[str, tuple[float, dict[str, tuple[int, ...]]]] = {}
        #: Job -> what it looked like at the last question, and since when (on the monotonic clock).
        self._still: dict[str, tuple[float, dict[str, tuple[int, ...]]]] = {}

    def place(self, job: str) -> Path:
        """Where a job's image is."""
        if _JOB.fullmatch(job) is None:
            raise Failure(f"images: expected a job's identifier, found {job[:40]!r}")
        return self.directory / job

    # ------------------------------------------------------------------ check

    def check(self) -> list[Check]:
        """Whether the directory can be used. Changes nothing."""
        subject = f"images ({self._method})"
        here = self.directory
        try:
            mode = here.stat().st_mode
        except OSError as error:
            return [Check(subject, False, f"{here}: {error.strerror}", f"mkdir -m 1777 {here}")]
        if not stat.S_ISDIR(mode):
            return [Check(subject, False, f"{here}: expected a directory", "correct the option `directory`")]
        if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
            found = f"{here}: every user can remove the images of other users from it"
            return [Check(subject, False, found, f"chmod +t {here}")]
        if not os.access(here, os.W_OK | os.X_OK):
            return [Check(subject, False, f"{here}: is not writable", "run as the service's user")]
        try:
            self.room()
        except Failure as error:
            return [Check(subject, False, str(error), "remove old images, or raise the quota")]
        used = sum(self._size(one) for one in self._kept())
        limit = f" of {_bytes(self._quota)}" if self._quota else ""
        return [Check(subject, True, f"{here}: {_bytes(used)}{limit} in images")]

    # ------------------------------------------------------------------ a job's image

    def prepare(self, job: str, user: str) -> None:
        """Make room for an image, and remember what is there before it is asked for."""
        self.room()
        place = self.place(job)
        owner = user_number(user)
        try:
            place.mkdir(mode=0o700)
            if owner is not None and os.geteuid() == 0 and owner != 0:
                # No other user can have put another directory here: it was made just now, and is sticky.
                os.chown(place, owner, -1, follow_symlinks=False)
        except FileExistsError:
            pass
        except OSError as error:
            raise Failure(f"{place}: {error.strerror}") from error
        self._own(place, owner)
        self._asked[job] = (time.time(), dict(self._marks(place)))
        self._still.pop(job, None)

    def confirm(self, job: str) -> Manifest:
        """The image, complete, measured and written down. Raises :class:`Unconfirmed` until it is so."""
        place = self.place(job)
        _, before = self._asked.get(job, (0.0, {}))
        now = dict(self._marks(place))
        if self._complete:
            mark = now.get(self._complete)
            if mark is None or mark == before.get(self._complete):
                raise Unconfirmed(f"{place / self._complete} is not there, or older than the request")
        else:
            if now == before or not now:
                raise Unconfirmed(f"nothing was written to {place} since the request")
            since, seen = self._still.get(job, (time.monotonic(), {}))
            if now != seen:
                self._still[job] = (time.monotonic(), now)
                raise Unconfirmed(f"{place} still changes")
            if time.monotonic() - since < self._settle:
                raise Unconfirmed(f"{place} changed less than {self._settle:g} s ago")
        files = [name for name in sorted(now) if name not in (self._complete, *self._words)]
        if not files:
            raise Failure(f"{place}: expected an image, found no file but {self._complete!r}")
        marks = {name: self._measure(place, name) for name in files}
        self._compare_with_list(place, marks)
        if dict(self._marks(place)) != now:
            raise Unconfirmed(f"{place} changed while it was read")
        manifest = Manifest(job, self._method, time.time(), tuple(marks.values()))
        if self._quota and sum(self._size(one) for one in self._kept()) > self._quota:
            raise Failure(f"{self.directory}: with this image the images are more than {_bytes(self._quota)}")
        self.keep_record(job, "json", msgspec.json.encode(manifest))
        return manifest

    def verify(self, job: str) -> Manifest:
        """The image as it was confirmed. Raises :class:`Failure` if it is damaged."""
        place = self.place(job)
        manifest = self.manifest(job)
        if manifest is None:
            raise Failure(f"{place}: no image of it was confirmed")
        for mark in manifest.files:
            found = self._measure(place, mark.name)
            if found != mark:
                what = f"{mark.size} bytes" if found.size != mark.size else f"SHA-256 {mark.sha256[:12]}..."
                seen = f"{found.size} bytes" if found.size != mark.size else f"{found.sha256[:12]}..."
                raise Failure(f"{place / mark.name}: expected {what}, found {seen}")
        return manifest

    def manifest(self, job: str) -> Manifest | None:
        """What was confirmed of a job's image; None if nothing was, or its record cannot be read."""
        try:
            return msgspec.json.decode(self.record(job, "json").read_bytes(), type=Manifest)
        except (OSError, msgspec.DecodeError):
            return None

    def discard(self, job: str) -> None:
        """Throw an image away: it is incomplete, or of no use any more."""
        self._remove(self.place(job))
        self._forget(job)
        self._asked.pop(job, None)
        self._still.pop(job, None)

    def files(self, job: str, user: str) -> list[str]:
        """The plain files in a job's directory, but for words that only hold for one execution; none without
        a directory. Raises :class:`Failure` for a directory of another user."""
        place = self.place(job)
        try:
            self._own(place, user_number(user))
        except FileNotFoundError:
            return []
        return [name for name, _ in sorted(self._marks(place)) if name not in self._words]

    def put_aside(self, job: str) -> Path:
        """Keep a damaged image for an operator to look at, where its job does not find it."""
        place = self.place(job)
        aside = self._records() / f"{job}.damaged"
        self._remove(aside)
        with contextlib.suppress(FileNotFoundError):
            place.rename(aside)
        self._forget(job)
        return aside

    # ------------------------------------------------------------------ age and quota

    def tidy(self, alive: frozenset[str]) -> list[str]:
        """Remove what outlived its job by ``keep``, and the oldest images without a job while there is more
        than the quota. An image of a job that is there is never removed."""
        said = []
        now = time.time()
        left: list[tuple[float, Path]] = []
        for path in self._kept():
            if path.name.removesuffix(".damaged") in alive and path.parent == self.directory:
                continue
            age = now - self._newest(path)
            if age > self._keep:
                said.append(self._drop(path, f"{age / 86400:.1f} days old"))
            else:
                left.append((age, path))
        if self._quota:
            used = sum(self._size(path) for path in self._kept())
            for _, path in sorted(left, reverse=True):
                if used <= self._quota:
                    break
                used -= self._size(path)
                said.append(self._drop(path, f"the images were more than {_bytes(self._quota)}"))
        return said

    def _drop(self, path: Path, why: str) -> str:
        size = self._size(path)
        self._remove(path)
        self._forget(path.name)
        return f"removed the image {path} ({_bytes(size)}): {why}"

    def room(self) -> None:
        """Raise :class:`Failure` where there is no room for another image."""
        try:
            room = os.statvfs(self.directory)
        except OSError as error:
            raise Failure(f"{self.directory}: {error.strerror}") from error
        free = room.f_bavail * room.f_frsize
        if free <= self._spare:
            raise Failure(
                f"{self.directory}: expected more than {_bytes(self._spare)} free, found {_bytes(free)}"
            )
        if self._quota:
            used = sum(self._size(path) for path in self._kept())
            if used >= self._quota:
                full = f"images of {_bytes(used)} fill the quota of {_bytes(self._quota)}"
                raise Failure(f"{self.directory}: {full}")

    # ------------------------------------------------------------------ files

    def _records(self) -> Path:
        path = self.directory / _RECORDS
        path.mkdir(mode=0o700, exist_ok=True)
        found = path.lstat()
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o022:
            raise Failure(f"{path}: expected a directory that only the daemon's user can write to")
        return path

    def record(self, job: str, kind: str) -> Path:
        """Where the daemon keeps what it knows of a job's image; ``kind``: "json" is the manifest."""
        return self._records() / f"{job}.{kind}"

    def keep_record(self, job: str, kind: str, content: bytes) -> None:
        """Write a record: it is there as a whole, or as it was."""
        path = self.record(job, kind)
        fresh = self.record(job, f"{kind}.new")
        try:
            with fresh.open("wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            fresh.replace(path)
        except OSError as error:
            raise Failure(f"{path}: {error.strerror}") from error

    def _forget(self, job: str) -> None:
        for kind in ("json", "ready"):
            with contextlib.suppress(OSError):
                self.record(job, kind).unlink()

    def _own(self, place: Path, owner: int | None) -> None:
        found = place.lstat()
        if not stat.S_ISDIR(found.st_mode):
            raise Failure(f"{place}: expected a directory")
        if found.st_uid not in (owner, os.geteuid()):
            raise Failure(f"{place}: expected it to belong to the job's user, found user {found.st_uid}")

    def _marks(self, place: Path) -> Iterator[tuple[str, tuple[int, ...]]]:
        """Every plain file's name and what changes with it."""
        number = 0
        for root, folders, names in os.walk(place, followlinks=False):
            folders.sort()
            for name in names:
                path = Path(root) / name
                with contextlib.suppress(FileNotFoundError):
                    found = path.lstat()
                    if not stat.S_ISREG(found.st_mode):
                        continue
                    number += 1
                    if number > _MOST_FILES:
                        raise Failure(f"{place}: expected at most {_MOST_FILES} files in an image")
                    yield (
                        str(path.relative_to(place)),
                        (found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns),
                    )

    def _measure(self, place: Path, name: str) -> FileMark:
        digest, size = hashlib.sha256(), 0
        with opened(place, name) as file:
            while chunk := file.read(CHUNK):
                digest.update(chunk)
                size += len(chunk)
        return FileMark(name, size, digest.hexdigest())

    def _compare_with_list(self, place: Path, marks: dict[str, FileMark]) -> None:
        """The list of checksums in the file ``complete``, where there is one."""
        if not self._complete:
            return
        with opened(place, self._complete) as file:
            text = file.read(_LONGEST_LIST).decode("utf-8", "replace")
        for line in text.splitlines():
            found = _LINE.fullmatch(line.strip())
            if found is None:
                continue
            name = os.path.normpath(found[2].removeprefix("./"))
            mark = marks.get(name)
            if mark is None:
                raise Failure(f"{place / self._complete}: names {name!r}, which is not there")
            if mark.sha256 != found[1]:
                expected = f"expected SHA-256 {found[1][:12]}..."
                raise Failure(f"{place / name}: {expected}, found {mark.sha256[:12]}... ({mark.size} bytes)")

    def _kept(self) -> Sequence[Path]:
        """Every image, images that were put aside included."""
        found = []
        for folder in (self.directory, self.directory / _RECORDS):
            with contextlib.suppress(OSError), os.scandir(folder) as entries:
                found += [
                    Path(one.path) for one in entries
                    if one.name != _RECORDS and one.is_dir(follow_symlinks=False)
                    and _JOB.fullmatch(one.name.removesuffix(".damaged"))
                ]  # fmt: skip
        return sorted(found)

    def _size(self, place: Path) -> int:
        return sum(mark[1] for _, mark in self._marks(place))

    def _newest(self, place: Path) -> float:
        times = [mark[2] / 1e9 for _, mark in self._marks(place)]
        with contextlib.suppress(OSError):
            times.append(place.lstat().st_mtime)
        return max(times, default=0.0)

    def _remove(self, place: Path) -> None:
        try:
            shutil.rmtree(place)
        except FileNotFoundError:
            pass
        except OSError as error:
            raise Failure(f"{place}: could not be removed: {error.strerror or error}") from error


@contextlib.contextmanager
def opened(place: Path, name: str) -> Iterator[BinaryIO]:
    """A plain file of an image; no step of its path may be a symbolic link."""
    path = place / name
    folder = os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        *parents, last = Path(name).parts
        for part in parents:
            below = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=folder)
            os.close(folder)
            folder = below
        file = os.open(last, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
    except OSError as error:
        raise Failure(f"{path}: {error.strerror}") from error
    finally:
        os.close(folder)
    with os.fdopen(file, "rb") as opened:
        if not stat.S_ISREG(os.fstat(opened.fileno()).st_mode):
            raise Failure(f"{path}: expected a plain file")
        yield opened


def user_number(name: str) -> int | None:
    """A user's number on this machine; None if it has none."""
    try:
        return pwd.getpwnam(name).pw_uid if name else None
    except KeyError:
        return None


def _bytes(size: int) -> str:
    for unit, factor in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if size >= factor:
            return f"{size / factor:.1f} {unit}"
    return f"{size} bytes"
