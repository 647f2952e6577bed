"""Runtimes of applications from what their users say about them, and from the runs that were recorded.

B. J. Lafreniere, A. C. Sodan: ScoPred - Scalable User-Directed Performance Prediction Using Complexity
Modeling and Historical Data. JSSPP 2005. A job says which application it is a run of and with which
parameters: ``sbatch --comment='scopred:app=ft;N=33554432'`` (the attribute ``comment`` of a job), or its name
does. A prediction serves planning alone: the user's estimate remains the limit, and no prediction is beyond
it. What cannot be predicted, or must not be used, is not answered, so the next predictor is asked, and then
the estimate counts; ``headway explain`` says why.

Decisions on what the paper leaves open:

- Runs are recorded when a job ends, with the time from its last start on without what it was suspended. Runs
  that did not complete are recorded and do not count. Of each application in each pool the last
  ``keep`` runs are remembered, over a restart too.
- The history of a pool is its own: other nodes, another history. ``classes`` names pools that are alike.
- What a job was predicted when it came holds until it starts, over a restart too: it is not predicted again
  from what was recorded since, unless it says something else of itself now. A run that outlives its
  prediction is expected to end by the upper end of its interval, and if it outlives that, by its limit.
- The sizes of the allocation are recorded; before the start the sizes that were asked for count.
- Of parts a job that ends says nothing, so applications with parts learn from the file of runs alone.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, ValidationInfo, model_validator

from headway.errors import UserError
from headway.events import (
    Event,
    JobChanged,
    JobEnded,
    JobRequeued,
    JobResumed,
    JobStarted,
    JobSubmitted,
    JobSuspended,
)
from headway.hookspecs import hookimpl
from headway.inputs import text_of
from headway.model import JobDescription
from headway.plugins import Traits
from headway.results import RunResult
from headway.state import Job, State
from headway_plugins.prediction.applications import (
    RUNTIME,
    Application,
    parse_applications,
    parse_settings,
    said_in,
)
from headway_plugins.prediction.measures import Measures
from headway_plugins.prediction.models import Model, Prediction, Run
from headway_plugins.prediction.regression import t_quantile
from headway_plugins.prediction.run_lists import parse_runs

#: The attribute of a job that holds what its user wrote about it.
COMMENT = "comment"
#: Sizes of the history from which on it is told apart how good predictions are.
SIZES = (0, 10, 30, 100)
#: Any of the last so many runs may be told again after a restart.
_AGAIN = 200


class ScopredOptions(BaseModel):
    """The options of :class:`Scopred`."""

    model_config = ConfigDict(extra="forbid")

    applications: Path = Field(description="YAML file with the applications (see docs/papers/scopred.md)")
    runs: Path | None = Field(
        None,
        description="file with runs from before the first start: CSV with the columns application and pool, "
        "or accounting",
    )
    classes: dict[str, str] = Field(
        {},
        description="pool -> kind of its nodes; pools of the same kind share their history; default: "
        "the pool's name",
    )
    keep: int = Field(
        1000, ge=2, le=100_000, description="number of runs that are kept of an application in a pool"
    )
    plan_with: Literal["mean", "upper"] = Field(
        "mean",
        description="runtime that is planned with: the mean, or the upper end of the interval for a run",
    )

    _applications: dict[str, Application] = PrivateAttr()
    _runs: list[tuple[str, str, Run]] = PrivateAttr()

    @model_validator(mode="after")
    def _read(self, info: ValidationInfo) -> ScopredOptions:
        for option, path in (("applications", self.applications), ("runs", self.runs)):
            if path is None:
                self._runs = []
                continue
            try:
                text = text_of(path, info.context)
            except (OSError, UnicodeDecodeError) as error:
                raise ValueError(f"{option}: {path} cannot be read: {error}") from error
            try:
                if option == "applications":
                    self._applications = parse_applications(text, str(path))
                else:
                    self._runs = _all_runs(text, str(path), self._applications)
            except UserError as error:
                raise ValueError(str(error)) from error
        return self

    @property
    def read(self) -> tuple[dict[str, Application], list[tuple[str, str, Run]]]:
        """The applications by name; the runs with their application and pool."""
        return self._applications, self._runs


def _all_runs(text: str, source: str, applications: dict[str, Application]) -> list[tuple[str, str, Run]]:
    found = []
    for name, application in applications.items():
        for one in parse_runs(text, source, name, application):
            found.append((name, one.pool, one.run))
    return found


@dataclass
class _Known:
    """A job that is a run of an application, and has not ended."""

    application: str
    pool: str
    #: What it says of its parameters.
    given: dict[str, float]
    #: What is wrong with what it says; "" if nothing is.
    problem: str = ""
    #: When it started, later by what it was suspended; its sizes, at first as asked for (0: not stated);
    #: since when it is suspended.
    started: float | None = None
    nodes: int = 0
    processors: int = 0
    suspended: float | None = None
    #: Seconds that it was predicted to take, and the upper end of the interval; None: it was not.
    predicted: float | None = None
    upper: float | None = None
    #: Runs that counted then, and the limit that its user asked for, seconds.
    history: int = 0
    estimate: float = 0.0
    #: What that followed from: pool, parameters, what was wrong with them, nodes and processors; None: it was
    #: not asked for. Why it was predicted so, or why it was not.
    of: list[Any] | None = None
    why: str = ""
    why_not: str = ""


class Scopred:
    """Predicts runtimes by regression, from formulas of applications and their recorded runs."""

    Options: ClassVar[type[ScopredOptions]] = ScopredOptions
    traits = Traits(
        observes=(
            JobSubmitted, JobChanged, JobStarted, JobEnded, JobRequeued, JobSuspended, JobResumed,
        ),
        paper="Lafreniere and Sodan, JSSPP 2005",
    )  # fmt: skip

    def __init__(self, options: ScopredOptions) -> None:
        self._options = options
        #: Applications by name.
        self.applications, runs = options.read
        self._names = {
            name: re.compile(application.match)
            for name, application in self.applications.items()
            if application.match
        }
        #: (application, kind of nodes) -> its runs; runs that ended here, oldest first.
        self._models: dict[tuple[str, str], Model] = {}
        self._ended: dict[tuple[str, str], list[dict[str, Any]]] = {}
        self._before: dict[tuple[str, str], list[Run]] = {}
        for name, pool, run in runs:
            self._before.setdefault((name, self.kind(pool)), []).append(run)
        self._jobs: dict[str, _Known] = {}
        self._measures = Measures(SIZES, intervals=True)
        #: Jobs of an earlier run of the daemon that were not seen again yet: their predictions hold.
        self._kept: set[str] = set()

    # ------------------------------------------------------------ what is kept

    @hookimpl
    def startup(self) -> None:
        # A missing SciPy must show at once, not after hours of driving a cluster.
        t_quantile(0.95, 1)

    @hookimpl
    def restore(self, saved: dict[str, Any]) -> None:
        self._jobs = {
            job_id: _Known(**known)
            for job_id, known in saved["jobs"].items()
            if known["application"] in self.applications
        }
        self._kept = {job_id for job_id, known in self._jobs.items() if known.of is not None}
        self._ended = {(one["application"], one["class"]): list(one["runs"]) for one in saved["runs"]}
        self._models.clear()
        self._measures.restore(saved.get("measures", {}))

    @hookimpl
    def checkpoint(self) -> dict[str, Any]:
        return {
            "jobs": {job_id: dict(vars(known)) for job_id, known in self._jobs.items()},
            "runs": [
                {"application": name, "class": kind, "runs": list(runs)}
                for (name, kind), runs in self._ended.items()
            ],
            "measures": self._measures.saved(),
        }

    @hookimpl
    def register_metrics(self) -> dict[str, Callable[[RunResult], Any]]:
        return {"scopred": lambda result: self.figures()}

    def figures(self) -> dict[str, Any]:
        """How many jobs were predicted and how well, over all and by the size of the history."""
        return self._measures.figures()

    def kinds(self, application: str) -> list[str]:
        """The kinds of nodes on which runs of an application are known, sorted."""
        found = {kind for name, kind in (*self._before, *self._ended) if name == application}
        return sorted(found)

    def model(self, application: str, pool: str) -> Model:
        """The recorded runs of an application in a pool."""
        return self._model((application, self.kind(pool)))

    # ------------------------------------------------------------ what happens

    @hookimpl
    def observe(self, event: Event, state: State) -> None:
        if isinstance(event, JobSubmitted | JobChanged):
            job = state.jobs.get(event.job.id)
            self._came(event.job, job.pool.name if job is not None else event.job.pool)
            return
        known = self._jobs.get(getattr(event, "job_id", ""))
        if known is None:
            return
        if isinstance(event, JobStarted):
            if known.started is None or event.time > known.started:
                # Otherwise it is told again, and what it was suspended since is known.
                known.started, known.suspended = event.time, None
            if event.placement:
                known.nodes = len(event.placement)
                known.processors = sum(count for _, count in event.placement)
        elif isinstance(event, JobEnded):
            self._over(event, known)
        elif isinstance(event, JobRequeued):
            known.started = known.suspended = None
        elif isinstance(event, JobSuspended):
            known.suspended = event.time
        elif isinstance(event, JobResumed) and known.suspended is not None:
            if known.started is not None:
                known.started += event.time - known.suspended
            known.suspended = None

    @hookimpl
    def predict_runtime(self, job: Job, state: State) -> float | None:
        # A job is predicted before its arrival is shown to plugins that observe.
        known = self._came(job.description, job.pool.name)
        if known is None:
            return None
        if job.start_time is not None:
            return self._corrected(job, known, state)
        known.nodes, known.processors = nodes, processors = _sizes(job)
        of = [known.pool, known.given, known.problem, nodes, processors]
        if job.id in self._kept:
            self._kept.discard(job.id)
            if known.of == of:
                # The daemon was started anew: what was told then was not from what is known now.
                return self._planned(known)
        known.of = of
        found, problem = self._predicted(known)
        known.estimate = job.estimate
        known.history = self._model((known.application, self.kind(known.pool))).counted
        if found is None:
            known.predicted, known.upper, known.why, known.why_not = None, None, "", problem
        else:
            known.predicted, known.upper = found.mean, found.upper if math.isfinite(found.upper) else None
            known.why, known.why_not = self._basis(found, known), ""
        return self._planned(known)

    @hookimpl
    def explain(self, job: Job, question: str) -> str | None:
        """What the prediction follows from, or why a run of an application is not predicted."""
        known = self._jobs.get(job.id)
        if question == "prediction":
            return (known is not None and known.why) or "from what was known when it was submitted"
        return known.why_not if known is not None and question == "no prediction" else None

    # ------------------------------------------------------------ inside

    def _came(self, job: JobDescription, pool: str) -> _Known | None:
        """Note what a job says of itself; None if it is no run of an application."""
        found = self._said(job)
        if found is None:
            self._jobs.pop(job.id, None)
            return None
        application, given, problem = found
        known = self._jobs.get(job.id)
        if known is None or known.application != application:
            known = self._jobs[job.id] = _Known(application, pool, given)
        known.pool, known.given, known.problem = pool, given, problem
        return known

    def _said(self, job: JobDescription) -> tuple[str, dict[str, float], str] | None:
        """The application of a job, its parameters, and what is wrong with what it says of them."""
        comment = (job.attributes or {}).get(COMMENT)
        if isinstance(comment, str) and (words := said_in(comment)) is not None:
            return self._marked(words)
        for name, pattern in self._names.items():
            if pattern.search(job.name):
                return name, {}, ""
        return None

    def _marked(self, words: dict[str, str]) -> tuple[str, dict[str, float], str] | None:
        """``app=ft;N=33554432``; None: of an application that is not described."""
        application = words.pop("app", "")
        if application not in self.applications:
            return None
        try:
            return application, parse_settings(words, "its comment"), ""
        except UserError as error:
            return application, {}, str(error)

    def _predicted(self, known: _Known) -> tuple[Prediction | None, str]:
        """What the recorded runs say about a job that has not started, or why they say nothing usable."""
        if known.problem:
            return None, known.problem
        application, parameters = self.applications[known.application], dict(known.given)
        for name, kind in application.sizes.items():
            if asked := known.nodes if kind == "nodes" else known.processors:
                parameters[name] = float(asked)
        model = self._model((known.application, self.kind(known.pool)))
        for name in model.parameters:
            if name not in parameters:
                of = (
                    f"its number of {application.sizes[name]}"
                    if name in application.sizes
                    else "its parameter"
                )
                return None, f"{of} {name} is not known"
        found = model.predict(parameters)
        if not found.valid:
            where = f"{known.application} in {self.kind(known.pool) or 'the pool'}"
            return None, f"{found.problem} ({where}, {_count(model.counted)})"
        return found, ""

    def _basis(self, found: Prediction, known: _Known) -> str:
        application = self.applications[known.application]
        level = f"{100 * application.level:g} %"
        where = f"{known.application} in {self.kind(known.pool) or 'the pool'}"
        if found.basis == "exact":
            return (
                f"the mean of {_count(found.n)} of {where} with just its parameters, "
                f"{level} within {found.pi:.3g} s"
            )
        formulas = application.formula or " + ".join(application.parts.values())
        return (
            f"regression of {formulas} on {_count(found.n)} of {where}, R2 {found.r2:.4f}, "
            f"{level} within {found.pi:.3g} s, leverage {found.leverage:.2g}"
        )

    def _planned(self, known: _Known) -> float | None:
        """What is planned with, seconds; None: nothing was predicted."""
        return known.upper if self._options.plan_with == "upper" else known.predicted

    def _corrected(self, job: Job, known: _Known, state: State) -> float | None:
        """What a running job is expected to run: as before, or until the end of the interval."""
        assert job.start_time is not None
        run = state.now - job.start_time - job.paused
        planned = self._planned(known)
        if planned is None or run < planned:
            return planned
        if known.upper is not None and run < known.upper:
            if known.why and "outlived" not in known.why:
                known.why += "; it ran longer than the mean and is expected to end by the upper end"
            return known.upper
        known.why_not = "it ran longer than its predicted interval"
        return None

    def _over(self, event: JobEnded, known: _Known) -> None:
        """Record a run that ended."""
        del self._jobs[event.job_id]
        application = self.applications[known.application]
        if known.started is None or known.problem or application.parts:
            return
        seconds = (event.time if known.suspended is None else known.suspended) - known.started
        if seconds < 0:
            return
        parameters = dict(known.given)
        for name, kind in application.sizes.items():
            parameters[name] = float(known.nodes if kind == "nodes" else known.processors)
        record = {
            "job": event.job_id, "end": event.time, "parameters": parameters, RUNTIME: seconds,
            "completed": event.outcome == "completed",
        }  # fmt: skip
        if event.outcome == "completed" and seconds > 0:
            self._judge(known, seconds)
        key = known.application, self.kind(known.pool)
        runs = self._ended.setdefault(key, [])
        if any(one["job"] == event.job_id and one["end"] == event.time for one in runs[-_AGAIN:]):
            return
        runs.append(record)
        if len(runs) > self._options.keep:
            del runs[: len(runs) - self._options.keep]
            self._models.pop(key, None)
        elif key in self._models:
            self._models[key].add(_run(record))

    def _judge(self, known: _Known, seconds: float) -> None:
        """Count how good the prediction of a job was that ran for so long."""
        inside = known.predicted is not None and (
            known.upper is None or abs(known.predicted - seconds) <= known.upper - known.predicted
        )
        self._measures.count(known.history, seconds, known.predicted, known.estimate, inside)

    def kind(self, pool: str) -> str:
        """The kind of a pool's nodes; a kind is its own."""
        return self._options.classes.get(pool, pool)

    def _model(self, key: tuple[str, str]) -> Model:
        """The runs of an application on a kind of nodes; made anew when the oldest was given up."""
        model = self._models.get(key)
        if model is None:
            runs = [*self._before.get(key, ()), *map(_run, self._ended.get(key, ()))]
            model = self._models[key] = Model(self.applications[key[0]], runs)
        return model


def _run(record: dict[str, Any]) -> Run:
    """A run as it is kept."""
    return Run(record["parameters"], {RUNTIME: record[RUNTIME]}, record["end"], record["completed"])


def _sizes(job: Job) -> tuple[int, int]:
    """Nodes and processors that a job asks for; 0: not stated. Without nodes each processor is a node."""
    request = job.request
    nodes = request.nodes
    if not nodes and request.processors_per_node:
        nodes = request.processors // request.processors_per_node
    return nodes or (job.processors if job.pool.flat else 0), request.processors


def _count(n: int) -> str:
    return "1 completed run" if n == 1 else f"{n} completed runs"
