"""Which format a workload's file has, and what has no place in it."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Sequence

from headway.errors import UserError
from headway.model import JobDescription, Request
from headway.workload.bounds import within_bounds
from headway.workload.cwf import REQUESTED_START, requested_start
from headway.workload.format import Format, first_lines, installed, not_loadable
from headway.workload.jobs import TraceJob
from headway.workload.packed import ENDINGS, opened, unpacked_name
from headway.workload.samples import located
from headway.workload.swf import FORMAT as SWF
from headway.workload.trace import Trace

#: What a record of any format says of a job; of the pool it needs to say nothing.
_WRITTEN = {"id", "submit_time", "request", "pool", "name", "user", "group", "qos", "attributes"}
_WRITTEN_OF_REQUEST = {"processors", "walltime", "memory_per_processor"}


def problems(trace: Trace, verbose: bool | None = None) -> list[str]:
    """What a reader of the trace should know of: what was wrong with it, and the formats that do not load
    here, since it may be of such a format. ``verbose``: line by line; None: lines cannot be asked for."""
    lines = trace.describe_issues(verbose=bool(verbose))
    more = ["(--verbose prints the lines)"] if lines and verbose is False else []
    return [*not_loadable().values(), *lines, *more]


def read_trace(path: str | os.PathLike[str], *, strict: bool = False) -> Trace:
    """Read a trace in the format that its name says, else that its first lines say; else in the standard
    format. ``sample:NAME`` is a trace that comes with headway.

    With ``strict`` a broken line is an error. Raises :class:`UserError` if the file cannot be read or has no
    job, and :class:`Failure` if the system fails.
    """
    path = located(path)
    with opened(path) as source:
        known = installed()
        named = _named(path, known)
        if named is not None:
            return within_bounds(known[named].read(source, strict), strict)
        lines = first_lines(source.beginning.decode("utf-8", "replace"))
        begun = next((one for one in known.values() if one.begins(lines)), None)
        if begun is not None:
            return within_bounds(begun.read(source, strict), strict)
        try:
            return within_bounds(SWF.read(source, strict), strict)
        except UserError as error:
            # The file may be of a format that is missing.
            raise UserError("; ".join([str(error), *not_loadable().values()])) from error


def format_to_write(path: str | os.PathLike[str]) -> Format:
    """The format in which a file of this name is written; :class:`UserError` if there is none."""
    known = installed()
    named = _named(path, known)
    if named is None or known[named].write is None:
        endings = sorted(end for one in known.values() if one.write is not None for end in one.endings)
        raise UserError(
            f"{os.fspath(path)}: expected a name that ends in {', '.join(endings)}, plain or with "
            f"{', '.join(ENDINGS)} behind it"
        )
    return known[named]


def write_trace(path: str | os.PathLike[str], trace: Trace) -> None:
    """Write a trace in the format that the file's name says; errors as :func:`format_to_write`, and
    :class:`Failure` if it cannot be written."""
    write = format_to_write(path).write
    assert write is not None
    write(path, trace)


def _named(path: str | os.PathLike[str], known: dict[str, Format]) -> str | None:
    """The name of the format whose ending a file has."""
    plain = unpacked_name(path)
    return next((name for name, one in known.items() if plain.endswith(one.endings)), None)


def without_a_place(jobs: Sequence[TraceJob]) -> list[str]:
    """What no format can hold of these jobs: such as "dependencies of 3 jobs"."""
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
    # Defaults belong to the last fields.
    optional = described.__struct_fields__[-len(described.__struct_defaults__) :]
    return [
        name
        for name, default in zip(optional, described.__struct_defaults__, strict=True)
        if name not in written and getattr(described, name) != default
    ]
