"""What protecting a job took, service by service, as a small JSON file."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import msgspec

from headway.errors import UserError
from headway.report.atomic import writing


class Service(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An option of a service: on how many files and bytes (each counted once), in how many seconds."""

    service: str
    option: str
    files: int
    bytes: int
    seconds: float


class Report(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The report of a run of ``headway protect``."""

    format: int
    #: The job's id in its batch system; "" outside of a batch system.
    job: str
    node: str
    #: Absolute seconds.
    began: float
    #: How long the command ran.
    command_seconds: float
    #: Its exit code, negative: the signal that ended it; None: it was not started.
    exit_code: int | None
    services: tuple[Service, ...]
    #: What could not be done, in words.
    remarks: tuple[str, ...] = ()

    @property
    def seconds(self) -> float:
        """All that protection took."""
        return sum(service.seconds for service in self.services)


def write_report(path: Path, report: Report) -> None:
    """Raises :class:`Failure`; an older file stays then."""
    with writing(path) as stream:
        stream.write(msgspec.json.format(msgspec.json.encode(report), indent=2).decode("utf-8") + "\n")


def read_report(path: Path) -> Report:
    """Raises :class:`UserError`."""
    try:
        found = msgspec.json.decode(path.read_bytes(), type=Report)
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}") from error
    except msgspec.DecodeError as error:
        raise UserError(f"{path}: expected a report of `headway protect`: {error}") from error
    if found.format != 1:
        raise UserError(f"{path}: expected a report of format 1, found format {found.format}")
    return found


def told(services: Iterable[Service]) -> str:
    """For a person, in a line."""
    return "; ".join(
        f"{one.service} {one.option}: {one.bytes / 1e6:.1f} MB of {one.files} files in {one.seconds:.3f} s"
        for one in services
    )
