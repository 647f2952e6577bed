"""``headway.compare``: a campaign from Python."""

from __future__ import annotations

import multiprocessing
import os
import warnings
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypedDict, Unpack

import yaml

from headway.experiment.answers import doubts_table, refuse_breaches
from headway.experiment.asked import definition_of, workload_entry
from headway.experiment.campaign import Campaign, workload_models
from headway.experiment.definition import campaign_of, check_policies
from headway.experiment.execution import run_campaign
from headway.experiment.record import files_of, made_by
from headway.experiment.rulebook import Kind, breaches, evidence_of, judge
from headway.experiment.seen import looked_at
from headway.inputs.extras import need_report
from headway.notebook.comparison import Comparison
from headway.notebook.named import Named, Plugin, known, named, several, source_of
from headway.plugins import Catalogue

#: A workload: a trace's file, a model's name, or the keys of a workload in a campaign's file.
Source = str | Path | Mapping[str, Any]


class Further(TypedDict, total=False):
    """What else can be said of a comparison: the keys of a campaign's file (``docs/experiments.md``)."""

    #: The machine: processors, or nodes as under ``emulation`` in a configuration; a profile of energy.
    processors: int
    nodes: Sequence[Mapping[str, Any]]
    energy: str
    #: Batch mode: jobs start only at multiples of so many seconds.
    cycle: float
    #: "weeks" or "users": each seed draws another trace from each trace. The first jobs of each trace alone.
    resample: str
    limit: int
    #: Measurements, assumptions, and rules that are not kept: {"accept": {rule: reason}}.
    method: Mapping[str, Any]
    first_seed: int
    #: Python files whose plugins the policies may name.
    plugin_files: Sequence[str | Path]


def compare(
    policies: Mapping[str, Plugin | Sequence[Plugin]] | Sequence[Plugin],
    workloads: Source | Sequence[Source],
    *,
    loads: Iterable[float] = (),
    seeds: int = 10,
    workers: int | None = None,
    **further: Unpack[Further],
) -> Comparison:
    """Run every policy on every workload, at every load, with every seed, and compare: ``headway compare``
    without a folder.

    ``policies``: names, plugin classes, or these with options, as in :func:`headway.run`; or by label, each
    one plugin or several. The others are compared with the first. ``workloads``: traces and models.
    ``loads``: the option ``load`` of models, offered loads of traces; default: as they are. ``seeds``: how
    many; a trace of which nothing is drawn runs once, and its intervals are over batches of its jobs.
    ``workers``: processes; default: all cores. ``further``: see :class:`Further`; without ``processors`` or
    ``nodes`` the machine has the size that the traces or the models name.

    The rules of the evaluation of schedulers that are broken or not answered are a Python warning.

    Raises :class:`headway.errors.UserError` for what is wrong with the arguments or with a file that they
    name, for a comparison that a rule refuses, and without the extra ``report``; what a run raises.
    """
    need_report("headway.compare")
    began = datetime.now(UTC)
    definition, plan = _defined(policies, workloads, list(loads), seeds, further)
    catalogue = plan.catalogue()
    said: list[str] = []
    try:
        before = judge(evidence_of(plan, catalogue, workloads=list(looked_at(plan, catalogue, said.append))))
        refuse_breaches(before, "compare", worst=Kind.REFUSE)
        check_policies(plan)
        count = _workers(plan, workers)
        rows = run_campaign(plan, workers=count)
        found = judge(evidence_of(plan, catalogue, rows=rows))
        if breaches(found):
            table = doubts_table(found)
            said.append("\n".join([table.note, *("  " + " ".join(row) for row in table.rows)]))
    finally:
        for text in dict.fromkeys(said):
            warnings.warn(text, stacklevel=2)
    files = files_of(plan, catalogue).named(Path())
    record = {"command": "headway.compare", **made_by(plan, files, Path(), f"{count} processes", began)}
    text = yaml.safe_dump(definition, sort_keys=False, allow_unicode=True)
    return Comparison(plan, rows, text, record, Path())


def _defined(
    policies: Mapping[str, Plugin | Sequence[Plugin]] | Sequence[Plugin],
    workloads: Source | Sequence[Source],
    loads: Sequence[float],
    seeds: int,
    further: Further,
) -> tuple[dict[str, Any], Campaign]:
    """The keys of the campaign's file, and the campaign."""
    given = known(further, Further.__annotations__, "compare")
    files = [Path(file) for file in given.pop("plugin_files", ())]
    variants = _variants(policies)
    classes = tuple(dict.fromkeys(kind for _, one in variants for kind in one.classes))
    catalogue = Catalogue(files, classes)
    of_traces = {"resample": given.pop("resample", ""), "limit": given.pop("limit", None)}
    entries = []
    for source in [workloads] if isinstance(workloads, str | Path | Mapping) else workloads:
        entry = _entry(source, catalogue)
        entries.append(workload_entry(entry, loads=loads, **(of_traces if entry.get("trace") else {})))
    definition = definition_of(
        [_policy(label, one) for label, one in variants], entries, catalogue, seeds=seeds, **given
    )
    return definition, campaign_of(definition, "compare", Path(), files, classes)


def _variants(
    policies: Mapping[str, Plugin | Sequence[Plugin]] | Sequence[Plugin],
) -> list[tuple[str, Named]]:
    """The policies by label."""
    if isinstance(policies, Mapping):
        return [(label, named(several(one), f"policies: {label}")) for label, one in policies.items()]
    found = []
    for at, plugin in enumerate([policies] if isinstance(policies, str | type) else policies):
        one = named([plugin], f"policies[{at}]")
        found.append((" ".join(one.names), one))
    return found


def _policy(label: str, one: Named) -> str | dict[str, Any]:
    """A policy as the campaign's file has it."""
    if one.names == (label,) and not one.options:
        return label
    plugins = [{name: dict(one.options[name])} if name in one.options else name for name in one.names]
    return {"label": label, "plugins": plugins}


def _entry(source: Source, catalogue: Catalogue) -> dict[str, Any]:
    """A workload as the campaign's file has it."""
    if isinstance(source, Mapping):
        return dict(source)
    path = source_of(source, lambda: workload_models(catalogue), "workloads")
    return {"model": source} if path is None else {"trace": str(path)}


def _workers(plan: Campaign, asked: int | None) -> int:
    """How many processes run it: a class of the program is known in another process only if that is a copy of
    this one."""
    if plan.plugin_classes and multiprocessing.get_start_method() != "fork":
        return 1
    return asked or os.cpu_count() or 1
