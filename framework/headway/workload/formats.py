"""Which format a workload's file has, and what has no place in it."""

from __future__ import annotations

import gzip
import os
import zlib
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Literal

from headway.errors import UserError
from headway.model import JobDescription, Request
from headway.workload.accounting import accounted_trace, is_accounting
from headway.workload.cwf import REQUESTED_START, CloudTrace, read_cwf, requested_start
from headway.workload.jobs import TraceJob
from headway.workload.swf import read_swf
from headway.workload.trace import Trace

Format = Literal["swf", "cwf"]

#: Bytes at a file's beginning that say whether it is accounting.
_BEGINNING = 1 << 16

#: What a record of either format says of a job; of the pool it needs to say nothing.
_WRITTEN = {"id", "submit_time", "request", "pool", "name", "user", "group", "qos", "attributes"}
_WRITTEN_OF_REQUEST = {"processors", "walltime", "memory_per_processor"}


def format_of(path: str | os.PathLike[str]) -> Format:
    """The format that a file's name says: ``.swf`` or ``.cwf``, with or without ``.gz``.

    Raises :class:`UserError` if it says neither.
    """
    name = os.fspath(path).removesuffix(".gz")
    if name.endswith(".swf"):
        return "swf"
    if name.endswith(".cwf"):
        return "cwf"
    raise UserError(f"{os.fspath(path)}: expected a name that ends in .swf, .swf.gz, .cwf or .cwf.gz")


def read_trace(path: str | os.PathLike[str], *, strict: bool = False) -> Trace:
    """Read a trace: a :class:`CloudTrace` if the name says so, a batch system's accounting
    (:mod:`.accounting`) if the text says so, else of the standard format.

    Errors as :func:`headway.workload.read_swf`, and for any broken line of accounting.
    """
    name = os.fspath(path).removesuffix(".gz")
    if name.endswith(".cwf"):
        return read_cwf(path, strict=strict)
    if not name.endswith(".swf") and (text := accounting_text(path)) is not None:
        return accounted_trace(text, os.fspath(path))
    return read_swf(path, strict=strict)


def accounting_text(path: str | os.PathLike[str]) -> str | None:
    """The text of a file that is a batch system's accounting, compressed with gzip or not; None if it is
    not. What can be read only once, such as a pipe, is not looked at. Raises :class:`UserError` if it is
    accounting and not UTF-8."""
    if not os.path.isfile(path):
        return None
    try:
        with open(path, "rb") as plain:
            packed = plain.read(2) == b"\x1f\x8b"
            plain.seek(0)
            stream = gzip.GzipFile(fileobj=plain) if packed else plain
            start = stream.read(_BEGINNING)
            if not is_accounting(start.decode("utf-8", "replace")):
                return None
            data = start + stream.read()
    except (OSError, EOFError, zlib.error):
        return None  # whoever reads it as a trace says what is wrong
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise UserError(
            f"{os.fspath(path)}, line {line}: expected UTF-8, found the byte 0x{data[error.start]:02x}"
        ) from error


def extensions(trace: Trace) -> str:
    """What the standard format cannot hold of a trace, for a person; "" for nothing."""
    if not isinstance(trace, CloudTrace):
        return ""
    return described_extensions(trace.dedicated, len(trace.commands))


def described_extensions(dedicated: int, commands: int) -> str:
    """Such as "2 requested starts and 1 elastic command"; "" for none of either."""
    counted = [(dedicated, "requested start"), (commands, "elastic command")]
    return " and ".join(f"{n:,} {what}{'' if n == 1 else 's'}" for n, what in counted if n)


def without_a_place(jobs: Sequence[TraceJob]) -> list[str]:
    """What neither format can hold of these jobs: such as "dependencies of 3 jobs"."""
    counts: Counter[str] = Counter()
    for job in jobs:
        fields = _set_fields(job.job, _WRITTEN)
        if job.job.begin_time is not None and job.job.begin_time == requested_start(job):
            fields.remove("begin_time")  # reading gives it back
        counts.update(fields)
        counts.update(f"request.{name}" for name in _set_fields(job.job.request, _WRITTEN_OF_REQUEST))
        counts.update(f"attribute {name}" for name in job.job.attributes or () if name != REQUESTED_START)
    return [f"{name} of {n:,} {'job' if n == 1 else 'jobs'}" for name, n in sorted(counts.items())]


def _set_fields(described: JobDescription | Request, written: Iterable[str]) -> list[str]:
    # Defaults are those of the last fields.
    optional = described.__struct_fields__[-len(described.__struct_defaults__) :]
    return [
        name
        for name, default in zip(optional, described.__struct_defaults__, strict=True)
        if name not in written and getattr(described, name) != default
    ]
