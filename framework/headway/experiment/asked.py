"""A campaign's definition from what a command line or a program says: the keys of the file that says the
same."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from headway.errors import UserError
from headway.experiment.campaign import read_once, workload_models
from headway.plugins import Catalogue


def definition_of(
    policies: Sequence[str | Mapping[str, Any]],
    workloads: Sequence[Mapping[str, Any]],
    catalogue: Catalogue,
    *,
    processors: int | None = None,
    energy: str | None = None,
    seeds: int | None = None,
    first_seed: int | None = None,
    cycle: float | None = None,
    method: Mapping[str, Any] | None = None,
    **machine: Any,
) -> dict[str, Any]:
    """The keys of a campaign's file (``docs/experiments.md``), without those that are None.

    ``workloads``: as the file has them. Without ``processors`` and without another ``machine`` (``nodes``,
    ...) the machine has the size that the traces' headers or the models name. Raises :class:`UserError` if
    they name none, or different sizes.
    """
    if processors is None and not any(machine.values()):
        processors = _size(workloads, catalogue)
    said = {
        "processors": processors,
        **machine,
        "energy": energy,
        "policies": list(policies),
        "workloads": [dict(one) for one in workloads],
        "seeds": seeds,
        "first_seed": first_seed,
        "cycle": cycle,
        "method": dict(method) if method else None,
    }
    return {key: value for key, value in said.items() if value is not None}


def workload_entry(
    source: Mapping[str, Any],
    *,
    loads: Iterable[float] = (),
    resample: str = "",
    limit: int | None = None,
) -> dict[str, Any]:
    """A workload as a campaign's file has it, at these loads: values of a model's option ``load``, offered
    loads of a trace. What the source says itself stands."""
    key = "loads" if source.get("model") else "target_loads"
    further = {key: list(loads), "resample": resample, "limit": limit}
    return {**{name: value for name, value in further.items() if value}, **source}


def _size(workloads: Sequence[Mapping[str, Any]], catalogue: Catalogue) -> int:
    """The processors of the machine that the workloads name."""
    found = {_named(one, catalogue) for one in workloads}
    sizes = {size for _, size in found}
    if len(sizes) == 1 and None not in sizes:
        (size,) = sizes
        assert size is not None
        return size
    told = ", ".join(f"{name}: {size or 'none'}" for name, size in sorted(found, key=str))
    raise UserError(f"--processors: expected the size of the machine, since the workloads name {told}")


def _named(work: Mapping[str, Any], catalogue: Catalogue) -> tuple[str, int | None]:
    """A workload, and the processors of the machine that it names; None: it names none."""
    if work.get("trace"):
        trace = read_once(str(work["trace"]))
        return Path(trace.path).name, trace.max_processors
    model = work["model"]
    given = (work.get("options") or {}).get("processors")
    models = workload_models(catalogue)
    fields = models[model].Options.model_fields if model in models else {}
    own = fields["processors"].default if "processors" in fields else None
    size = own if given is None else given
    return str(model), size if isinstance(size, int) else None
