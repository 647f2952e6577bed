"""``headway.run``: a dry run from Python."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypedDict, Unpack

from headway.dry_run.asked import Asked
from headway.dry_run.emulated import emulated
from headway.dry_run.site import Site, configured
from headway.dry_run.written import Finished
from headway.errors import Failure, UserError
from headway.experiment.campaign import workload_models
from headway.notebook.named import Plugin, as_settings, known, named, several, source_of
from headway.notebook.runs import Run
from headway.plugins import Catalogue
from headway.plugins.failures import refuse_failed
from headway.report.values import decision_array, job_array
from headway.workload import Trace


class Further(TypedDict, total=False):
    """What else can be said of a run: the options of ``headway dry-run``, which explains each."""

    #: The first jobs, the last jobs, and the jobs submitted in a span (seconds after the first submission).
    first: int
    last: int
    window: tuple[float, float]
    #: Factors on the times between submissions, on runtimes and estimates, and on sizes.
    scale_arrivals: float
    scale_runtimes: float
    scale_sizes: float
    #: Run only so many of the jobs that the machine accepts.
    limit: int
    #: "chains": users submit their next job after their last job ended.
    feedback: str
    #: A model of users' estimates, or its file, and its options.
    estimates: str
    estimate_options: Mapping[str, Any]
    #: Options of the workload model.
    model_options: Mapping[str, Any]
    #: An energy profile: an installed profile's name, or a file.
    energy: str
    #: Batch mode: jobs start only at multiples of so many seconds.
    cycle: float
    #: CSV files that say more of the jobs.
    licences: str | Path
    data: str | Path
    switches: str | Path
    cpu: str | Path
    #: How many runs are drawn; the result is the run nearest to the middle of all.
    draws: int
    #: A broken line of the trace is an error.
    strict: bool
    #: Rule of evaluation -> why it is not kept here.
    accept: Mapping[str, str]
    #: Python files whose plugins are enabled, and whose adapters the configuration names.
    plugin_files: Sequence[str | Path]
    adapter_files: Sequence[str | Path]


def run(
    trace: str | Path | Trace,
    policy: Plugin | None = None,
    *,
    processors: int | None = None,
    plugins: Plugin | Sequence[Plugin] = (),
    config: str | Path | None = None,
    seed: int | None = None,
    **further: Unpack[Further],
) -> Run:
    """Run a workload in the emulated cluster, as ``headway dry-run`` does, with the same numbers.

    ``trace``: a file in any format of ``docs/workloads.md``, the name of a workload model, or a trace that
    has been read. ``policy``: a policy's or preset's name, a plugin class, or one of these with its options,
    such as ``{"window": {"size": 5}}``; default: the configuration's, else ``easy``. ``processors``: of a
    machine without nodes; default: as configured, else the size that the trace or the model names.
    ``plugins``: further plugins, enabled after the others. ``config``: a configuration file. ``seed``: of all
    random draws; default: as configured, else 0. ``further``: see :class:`Further`.

    A message that names an option of the command, such as ``--scale-sizes``, means the argument of that name.
    What may not be as it was meant, such as broken lines of a trace, is a Python warning.

    Raises :class:`headway.errors.UserError` for what is wrong with the arguments or with a file that they
    name, and :class:`headway.errors.Failure` if a plugin failed at every call.
    """
    asked = _asked(trace, policy, several(plugins), further)
    given = {"processors": processors, "config_path": None if config is None else Path(config), "seed": seed}
    said: list[str] = []
    try:
        finished = _finished(Asked.of({**asked, **given, "decisions": True, "verbose": None}), said)
    finally:
        for text in dict.fromkeys(said):
            warnings.warn(text, stacklevel=2)
    figures, trusted = finished.figures, finished.trusted
    method = {} if trusted is None else {"method": trusted.data()}
    return Run(
        {**figures.summary, **method},
        lambda: job_array(figures),
        lambda: decision_array(figures.result),
        finished,
    )


def _finished(asked: Asked, said: list[str]) -> Finished:
    """The run, when it is over; ``said`` is told of what may not be as it was meant."""
    site = Site.of(asked, configured(asked), said.append)
    done = emulated(asked, site)
    try:
        refuse_failed(done.result.failures)
    except Failure as error:
        for failure in done.result.failures:
            error.add_note(str(failure))
        raise
    return Finished.of(done.result, site, done.replayed, done.judged)


#: Arguments that the groups of a dry run call otherwise.
_CALLED = {"licences": "licences_path", "data": "data_path", "switches": "switches_path", "cpu": "cpu_path"}


def _asked(
    trace: str | Path | Trace, policy: Plugin | None, plugins: Sequence[Plugin], further: Further
) -> dict[str, Any]:
    """The options of a dry run by name."""
    given = known(further, Further.__annotations__, "run")
    one = named([] if policy is None else [policy], "policy")
    if len(one.names) > 1:
        raise UserError(f"policy: expected one policy, found {', '.join(one.names)}; give others as plugins")
    others = named(plugins, "plugins")
    files = [Path(file) for file in given.pop("plugin_files", ())]
    classes = tuple(dict.fromkeys((*one.classes, *others.classes)))
    asked: dict[str, Any] = {
        "policy": one.names[0] if one.names else None,
        "further": others.names,
        "plugin_classes": classes,
        "plugin_options": {**one.options, **others.options},
        "plugin_files": tuple(files),
        "adapter_files": tuple(Path(file) for file in given.pop("adapter_files", ())),
        "settings": as_settings(given.pop("model_options", {})),
        "estimate_settings": as_settings(given.pop("estimate_options", {})),
        "accept": tuple(f"{rule}={reason}" for rule, reason in given.pop("accept", {}).items()),
    }
    for name, called in _CALLED.items():
        if name in given:
            asked[called] = Path(given.pop(name))
    return {**asked, **given, **_source(trace, files, classes)}


def _source(trace: str | Path | Trace, files: Sequence[Path], classes: Sequence[type]) -> dict[str, Any]:
    if isinstance(trace, Trace):
        return {"trace": trace}
    path = source_of(trace, lambda: workload_models(Catalogue(files, classes)), "trace")
    return {"workload": trace} if path is None else {"trace_path": path}
