"""Running a pipeline: what its program is told, and what a controlled run is asked for.

A program finds its copies in the environment: ``HEADWAY_FILTERS`` names its filters, ``HEADWAY_COPIES`` their
copies, both with commas between and in the pipeline's order, ``HEADWAY_PROCESSORS`` what they were found for.
In a controlled run each filter has one copy, and ``HEADWAY_PROFILE`` names the file in which the program
leaves, as JSON, what each filter received (bytes) and how long it was busy (seconds)::

    {"filters": {"read": {"bytes": 1000, "seconds": 2.5}, ...}}

No shell sees any of it.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from time import monotonic
from typing import Any

from headway.adapter.user_side import Allocation, load_user_side
from headway.errors import Failure
from headway_plugins.pipelines.pipeline import Parameters, Pipeline, said
from headway_plugins.pipelines.profiles import Profile, parsed_profile

FILTERS, COPIES, PROCESSORS = "HEADWAY_FILTERS", "HEADWAY_COPIES", "HEADWAY_PROCESSORS"
PROFILE = "HEADWAY_PROFILE"
#: Batch system -> what a job of it is known by, and where the name of its queue stands.
_SYSTEMS = {
    "slurm": ("SLURM_JOB_ID", "SLURM_JOB_PARTITION"),
    "pbs": ("PBS_JOBID", "PBS_QUEUE"),
    "lsf": ("LSB_JOBID", "LSB_QUEUE"),
}


def environment(pipeline: Pipeline, copies: Sequence[int], processors: int) -> dict[str, str]:
    """What the program is told beside what is in the environment already."""
    return {
        FILTERS: ",".join(pipeline.names),
        COPIES: ",".join(map(str, copies)),
        PROCESSORS: str(processors),
    }


def allocation(environ: Mapping[str, str]) -> Allocation | None:
    """The job in which this process runs, on any of the batch systems; None: in none."""
    for system, (job, queue) in _SYSTEMS.items():
        if job in environ and queue in environ:
            return load_user_side(system, {"queue": environ[queue]}).allocation(environ)
    return None


def become(argv: Sequence[str], told: Mapping[str, str]) -> None:
    """Let the program take this process's place. Raises :class:`Failure` if it cannot be called."""
    try:
        os.execvpe(argv[0], list(argv), {**os.environ, **told})
    except OSError as error:
        raise Failure(f"{argv[0]}: cannot be called: {error.strerror}") from error


def controlled_run(pipeline: Pipeline, parameters: Parameters, processors: int) -> Profile:
    """Run the program with one copy of each filter, and take its profile.

    Raises :class:`Failure` if it fails, :class:`UserError` if what it left is no profile.
    """
    argv = pipeline.called(parameters)
    with tempfile.TemporaryDirectory(prefix="headway-profile-") as directory:
        path = Path(directory) / "profile.json"
        told = environment(pipeline, [1] * len(pipeline.filters), processors)
        began = monotonic()
        code = _call(argv, {**told, PROFILE: str(path)})
        wall = monotonic() - began
        if code:
            how = f"signal {-code}" if code < 0 else f"exit code {code}"
            raise Failure(f"the controlled run with {said(parameters)} failed: {argv[0]}: {how}")
        place = f"the controlled run with {said(parameters)}, {PROFILE}"
        try:
            left: Any = json.loads(path.read_text(encoding="utf-8"))
        except OSError as error:
            raise Failure(f"{place}: {argv[0]} left no profile: {error.strerror}") from error
        except ValueError as error:
            raise Failure(f"{place}: no JSON: {error}") from error
        if isinstance(left, dict):
            left = {**left, "wall": wall}
        return parsed_profile(left, pipeline, parameters, place)


def _call(argv: Sequence[str], told: Mapping[str, str]) -> int:
    """Run a program to its end; what it is told to do by SIGTERM, it is told too."""
    try:
        program = subprocess.Popen(list(argv), env={**os.environ, **told})
    except OSError as error:
        raise Failure(f"{argv[0]}: cannot be called: {error.strerror}") from error
    before = signal.signal(signal.SIGTERM, lambda number, _: program.send_signal(number))
    try:
        return program.wait()
    finally:
        signal.signal(signal.SIGTERM, before)
