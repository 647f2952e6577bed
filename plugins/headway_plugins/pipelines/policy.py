"""Pipelines in a queue: one at a time, each with the whole machine, its copies found when it starts.

L. F. Goes and others: AnthillSched. JSSPP 2005, sections 3 and 4: first come, first served, with exclusive
use of all processors. A job is a pipeline by its attribute ``pipeline``::

    {"program": "id3", "parameters": {"minimum_node_size": 0.5}}

What its controlled run measured is in the store (option ``store``), or with the job (``profile``, as
programs write it, with ``wall``). A pipeline of unknown filters is refused, and so is a pipeline without a
profile where the strategy needs a profile. Other jobs run as they are.

What so many copies make of a job's speed is known in emulation only: from the seconds that a job names for
each strategy (``times``), else from :mod:`.execution`. On a batch system the job itself finds its copies
(``headway size --run``); nothing of this is needed there.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pydantic

from headway.decisions import Decision
from headway.errors import UserError
from headway.events import Event, JobChanged, JobEnded, JobSubmitted
from headway.hookspecs import Plugin, hookimpl
from headway.inputs import text_of
from headway.plugins import Again, Traits
from headway.results import RunResult
from headway.state import Job, State
from headway.view import View
from headway_plugins.pipelines.execution import ExecutionModel
from headway_plugins.pipelines.metrics import figures
from headway_plugins.pipelines.pipeline import Parameters, Pipeline, parsed_pipeline
from headway_plugins.pipelines.profiles import Profile, nearest_two, parsed_profile, parsed_store
from headway_plugins.pipelines.sizing import ITERATIONS, WEIGHTS, Mode
from headway_plugins.pipelines.strategies import MEASURED, SHORT, Rules, Sized, Strategy, size
from headway_plugins.pipelines.tamandua import ID3, PIPELINE

_MODEL = ExecutionModel()


class PipelineOptions(pydantic.BaseModel):
    """Options of the policy for pipelines."""

    model_config = pydantic.ConfigDict(extra="forbid")

    strategy: Strategy = pydantic.Field(default="OAS", description="AS, BS, NOAS (AnthillSched), OAS or OBS")
    pipelines: list[Path] = pydantic.Field(default=[], description="files that describe the pipelines")
    store: Path | None = pydantic.Field(
        default=None, description="file with the profiles (see `headway profile`)"
    )
    short: float = pydantic.Field(
        default=SHORT,
        ge=0,
        description="a pipeline is sequential if its controlled run took less than this, in seconds",
    )
    mode: Mode = pydantic.Field(
        default="loop",
        description="numbers of copies are rounded in every iteration (default), or once at the end (final)",
    )
    iterations: int = pydantic.Field(default=ITERATIONS, ge=1, description="most iterations")
    weights: tuple[float, float] = pydantic.Field(
        default=WEIGHTS, description="weights of the share of bytes and of the share of time"
    )
    cap: bool = pydantic.Field(
        default=False, description="limit the copies of a filter to the number of nodes with its data"
    )
    start_up: float = pydantic.Field(
        default=_MODEL.start_up, ge=0, description="in emulation: seconds to start a copy"
    )
    reading_start_up: float = pydantic.Field(
        default=_MODEL.reading_start_up,
        ge=0,
        description="in emulation: seconds to start a copy of a filter that reads",
    )
    receiving: float = pydantic.Field(
        default=_MODEL.receiving,
        ge=0,
        le=1,
        description="in emulation: share of time that a filter spends receiving a broadcast",
    )
    crowding: float = pydantic.Field(
        default=_MODEL.crowding,
        ge=0,
        description="in emulation: additional work, as a share, where all filters share all processors",
    )

    _described: dict[str, Pipeline] = pydantic.PrivateAttr(default_factory=dict)
    _profiles: dict[str, list[Profile]] = pydantic.PrivateAttr(default_factory=dict)

    @pydantic.field_validator("weights")
    @classmethod
    def _weighs(cls, value: tuple[float, float]) -> tuple[float, float]:
        if min(value) < 0 or not 0 < sum(value) < float("inf"):
            raise ValueError("expected two numbers of at least 0, one of them above 0")
        return value

    @pydantic.model_validator(mode="after")
    def _read(self, info: pydantic.ValidationInfo) -> PipelineOptions:
        for path in self.pipelines:
            made = parsed_pipeline(_text(path, info.context, "pipelines"), str(path))
            self._described[made.program] = made
        if self.store is not None:
            text = _text(self.store, info.context, "store")
            for made in self._described.values():
                self._profiles[made.program] = parsed_store(text, str(self.store), made)
        return self

    @property
    def described(self) -> Mapping[str, Pipeline]:
        """The pipelines of the files, by program."""
        return self._described

    @property
    def profiles(self) -> Mapping[str, list[Profile]]:
        """The profiles of the store, by program."""
        return self._profiles


def _text(path: Path, context: Mapping[str, Any] | None, option: str) -> str:
    try:
        return text_of(path, context)
    except (OSError, UnicodeDecodeError) as error:
        problem = getattr(error, "strerror", None) or error
        raise UserError(f"plugin 'pipelines': {option}: {path} cannot be read: {problem}") from error


class _Known:
    """A job that is a pipeline."""

    __slots__ = ("parameters", "pipeline", "profile", "sized", "times")

    def __init__(
        self, pipeline: Pipeline, parameters: Parameters, profile: Profile | None, times: Any
    ) -> None:
        self.pipeline, self.parameters, self.profile = pipeline, parameters, profile
        self.times: dict[str, float] = times
        self.sized: Sized | None = None


class Pipelines(Plugin):
    """First come, first served, one job at a time; each filter of a pipeline gets its copies."""

    traits = Traits(
        observes=(JobSubmitted, JobChanged, JobEnded),
        ask_again=Again.DOMAIN,
        paper=(
            "L. F. Goes and others: AnthillSched: A Scheduling Strategy for Irregular and Iterative "
            "I/O-Intensive Parallel Jobs. JSSPP 2005"
        ),
    )
    Options = PipelineOptions
    options: PipelineOptions

    def __init__(self, options: PipelineOptions | None = None) -> None:
        options = options or PipelineOptions()
        super().__init__(options)
        self._pipelines = {ID3.program: ID3, **options.described}
        self._rules = Rules(
            options.strategy, options.short, options.mode, options.iterations, options.weights, options.cap
        )
        self._model = ExecutionModel(
            options.start_up, options.reading_start_up, options.receiving, options.crowding
        )
        self._known: dict[str, _Known] = {}

    # ------------------------------------------------------------------ what a job is

    def _understood(self, said: Any) -> _Known:
        """A job's attribute. Raises :class:`UserError` that says what is wrong with it."""
        if not isinstance(said, dict) or not isinstance(said.get("program"), str):
            raise UserError("its attribute 'pipeline' names no program")
        pipeline = self._pipelines.get(said["program"])
        if pipeline is None:
            raise UserError(f"no file describes the pipeline {said['program']!r}")
        given = said.get("parameters", {})
        parameters = pipeline.checked(given if isinstance(given, dict) else {}, "its attribute 'pipeline'")
        profile = None
        if said.get("profile") is not None:
            profile = parsed_profile(said["profile"], pipeline, parameters, "its profile")
        times = said.get("times") or {}
        if not isinstance(times, dict) or not all(
            isinstance(value, int | float) and value > 0 for value in times.values()
        ):
            raise UserError("its attribute 'pipeline' has times that are no seconds above 0")
        return _Known(pipeline, parameters, profile, times)

    def _profiles(self, known: _Known) -> list[Profile]:
        if known.profile is not None:
            return [known.profile]
        return self.options.profiles.get(known.pipeline.program, [])

    @hookimpl
    def admit_job(self, job: Job) -> str | None:
        said = job.attribute(PIPELINE)
        if said is None:
            return None
        try:
            known = self._understood(said)
            if self.options.strategy in MEASURED:
                # Whether there is a profile does not depend on the machine.
                size(known.pipeline, known.parameters, 1, self._profiles(known), self._rules)
        except UserError as error:
            return str(error)
        self._known[job.id] = known
        return None

    @hookimpl
    def observe(self, event: Event, state: State) -> None:
        if isinstance(event, JobEnded):
            self._known.pop(event.job_id, None)
        elif isinstance(event, JobSubmitted | JobChanged) and (known := self._known.get(event.job.id)):
            known.sized = None

    # ------------------------------------------------------------------ the policy

    @hookimpl
    def schedule(self, view: View) -> list[Decision]:
        if not view.running and view.queue:
            job = view.queue[0]
            known = self._known.get(job.id)
            reason = "first in the queue, alone on the machine"
            if known is not None:
                found = self._size(known, view.total)
                copies = zip(known.pipeline.names, found.copies, strict=True)
                reason = f"copies: {', '.join(f'{name} {count}' for name, count in copies)} ({found.reason})"
            view.start(job, reason)
        return view.made

    def _size(self, known: _Known, processors: int) -> Sized:
        if known.sized is None:
            known.sized = size(
                known.pipeline, known.parameters, processors, self._profiles(known), self._rules
            )
        return known.sized

    # ------------------------------------------------------------------ emulation, figures

    @hookimpl
    def register_physics(self) -> Pipelines:
        return self

    def rate(self, execution: Any, now: float) -> float:
        """A factor on the job's speed, 1 for a controlled run."""
        known = self._known.get(execution.job.id)
        if known is None:
            return 1.0
        processors = execution.job.request.processors
        found = self._size(known, processors)
        strategy = "sequential" if found.sequential else self.options.strategy
        named = {"OAS": "NOAS", "OBS": "BS"}.get(strategy, strategy)
        work = execution.trace.runtime
        if named in known.times:
            return float(work / known.times[named])
        near = nearest_two(self._profiles(known), known.parameters)
        if not near:
            return 1.0
        seconds = self._model.seconds(known.pipeline, near[0][0], found.copies, processors)
        return float(work / seconds) if seconds > 0 else 1.0

    @hookimpl
    def register_metrics(self) -> dict[str, Any]:
        return {"pipelines": measured}


def measured(result: RunResult) -> dict[str, float] | None:
    """Equations (1) to (5) of the paper over the jobs that ended; None if none did."""
    ran = [job for job in result.jobs if job.start_time is not None and job.end_time is not None]
    if not ran:
        return None
    arrival, start, end = (
        np.array(column, np.float64)
        for column in zip(*((j.job.submit_time, j.start_time, j.end_time) for j in ran), strict=True)
    )
    found = figures(arrival, start - arrival, end - start)
    return {
        "execution_seconds": found.execution, "idle_seconds": found.idle, "mean_wait_seconds": found.wait,
        "mean_response_seconds": found.response, "mean_slowdown": found.slowdown,
    }  # fmt: skip
