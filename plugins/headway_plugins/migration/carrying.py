"""What is in a job's image directory, taken to the image directory of another cluster.

Before a job that ran goes to another cluster, what it has saved is copied to where its handler keeps images
there. It is copied as it is, confirmed or not: begun again where it was, the job would find the same. The
original stays, because the job may stay after all.

The copy is made where the daemon alone can write, and each file is read again and compared. Then the copy is
given to the job's user and renamed to its place, so a copy is there as a whole or not at all.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import msgspec

from headway.errors import Failure
from headway_plugins.migration.images import CHUNK, Images, Manifest, opened, user_number


def carry(
    here: Images, job: str, there: Images, job_there: str, user: str, *, stopping: Callable[[], bool]
) -> str:
    """Copy the image of a job that waits; what was copied, in words, "" if there is nothing.

    ``stopping``: whether the daemon ends. Raises :class:`Failure`.
    """
    source = here.place(job)
    names = here.files(job, user)
    if not names:
        return ""
    target = there.place(job_there)
    there.room()
    fresh = there.record(job_there, "coming")
    shutil.rmtree(fresh, ignore_errors=True)
    size = 0
    try:
        fresh.mkdir(mode=0o700)
        for name in names:
            size += _copied(source, name, fresh / name, stopping)
        _give(fresh, user_number(user))
        there.files(job_there, user)
        there.discard(job_there)
        fresh.rename(target)
    except OSError as error:
        raise Failure(f"{target}: job {job}'s image was not copied: {error.strerror or error}") from error
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    confirmed = here.manifest(job)
    if confirmed is not None:
        known = Manifest(job_there, confirmed.method, confirmed.time, confirmed.files)
        there.keep_record(job_there, "json", msgspec.json.encode(known))
    return f"{len(names)} files of {size} bytes, from {source} to {target}"


def _copied(source: Path, name: str, target: Path, stopping: Callable[[], bool]) -> int:
    """Copy one file; its bytes."""
    digest, size = hashlib.sha256(), 0
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with opened(source, name) as file, target.open("xb") as copy:
        while chunk := file.read(CHUNK):
            if stopping():
                raise Failure(f"{target}: the daemon ends")
            digest.update(chunk)
            copy.write(chunk)
            size += len(chunk)
        copy.flush()
        os.fsync(copy.fileno())
        found = os.fstat(file.fileno())
    os.chmod(target, found.st_mode & 0o777)
    os.utime(target, ns=(found.st_atime_ns, found.st_mtime_ns))
    with target.open("rb") as copy:
        again = hashlib.file_digest(copy, "sha256").hexdigest()
    if again != digest.hexdigest():
        raise Failure(f"{target}: expected SHA-256 {digest.hexdigest()[:12]}..., found {again[:12]}...")
    return size


def _give(place: Path, owner: int | None) -> None:
    """Make a copy its user's."""
    if owner is None or os.geteuid() != 0:
        return
    for root, folders, names in os.walk(place):
        for name in (*folders, *names):
            os.chown(Path(root) / name, owner, -1, follow_symlinks=False)
    os.chown(place, owner, -1, follow_symlinks=False)
