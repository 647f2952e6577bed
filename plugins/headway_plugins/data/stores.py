"""Which datasets the stores of sites are to have for the jobs that wait, in the order of these jobs.

A store that cannot hold the data of all waiting jobs is filled job by job, in the order of the jobs: a job's
datasets are copied only if all of them fit beside the datasets of the jobs before it, of the jobs that run
there and of the copies on their way. The first job whose data do not fit closes the store for the jobs behind
it. So no two jobs keep half of their data each, and wait for each other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass

from headway.state.catalogue import Catalogue

_INF = float("inf")


@dataclass(frozen=True)
class Need:
    """A job that waits, and the datasets that it reads."""

    job: str
    site: str
    datasets: tuple[str, ...]


@dataclass(frozen=True)
class Filling:
    """What the stores are to have."""

    #: Copies that are neither there nor on their way, as (dataset, site), with the first job that needs each.
    wanted: Mapping[tuple[str, str], str]
    #: Site -> datasets that are not dropped there.
    kept: Mapping[str, Set[str]]
    #: Site -> the first job whose datasets do not fit.
    full: Mapping[str, str]


def fill(catalogue: Catalogue, needs: Iterable[Need], reading: Mapping[str, Set[str]]) -> Filling:
    """What the stores are to have for these jobs, the first one first; ``reading``: site -> datasets that
    running jobs read there."""
    kept: dict[str, set[str]] = {site: set(datasets) for site, datasets in reading.items()}
    for name, dataset in catalogue.datasets.items():
        for site in dataset.at:
            kept.setdefault(site, set()).add(name)
    for copy in catalogue.copies.values():
        kept.setdefault(copy.site, set()).add(copy.dataset)
        kept.setdefault(copy.source, set()).add(copy.dataset)
    taken = {
        site: sum(catalogue.datasets[name].size for name in names if name in catalogue.datasets)
        for site, names in kept.items()
    }
    wanted: dict[tuple[str, str], str] = {}
    full: dict[str, str] = {}
    for need in needs:
        site = need.site
        if site in full:
            continue
        here = kept.setdefault(site, set())
        more = [name for name in need.datasets if name not in here]
        total = taken.get(site, 0) + sum(catalogue.datasets[name].size for name in more)
        if more and total > capacity(catalogue, site):
            if not why_never(catalogue, need.datasets, site):
                full[site] = need.job
            continue
        taken[site] = total
        here.update(more)
        for name in need.datasets:
            if not catalogue.has(name, site) and (name, site) not in catalogue.copies:
                wanted.setdefault((name, site), need.job)
    return Filling(wanted, kept, full)


def capacity(catalogue: Catalogue, site: str) -> float:
    """Bytes that the site's store can hold; infinite if it is not bounded, 0 without a store."""
    store = catalogue.store(site)
    return 0.0 if store is None else store.capacity or _INF


def why_never(catalogue: Catalogue, datasets: Iterable[str], site: str) -> str:
    """Why a job with these datasets can never run at the site; "" if it can."""
    datasets = tuple(datasets)
    unknown = [name for name in datasets if name not in catalogue.datasets]
    if unknown:
        blanks = "; commas stand between names" if " " in unknown[0] else ""
        return f"dataset {unknown[0]!r} is not configured (key datasets){blanks}"
    missing = [name for name in datasets if not catalogue.has(name, site)]
    if missing and catalogue.store(site) is None:
        return f"it reads dataset {missing[0]}, and {site} has no store"
    for name in missing:
        if (name, site) in catalogue.copies:
            continue
        if not catalogue.replicas[name]:
            return f"no site has dataset {name}"
        if catalogue.nearest(name, site) is None:
            having = ", ".join(catalogue.replicas[name])
            return f"dataset {name} is at {having}, and no link leads from there to {site}"
    most = capacity(catalogue, site)
    if not missing or most == _INF:
        return ""
    stays = {name for name, one in catalogue.datasets.items() if site in one.at}
    size = sum(catalogue.datasets[name].size for name in stays | set(datasets))
    if size > most:
        return (
            f"its datasets, with those that stay at {site}, have {size} bytes, "
            f"and the store of {site} has {most:.0f}"
        )
    return ""


def droppable(
    catalogue: Catalogue, site: str, kept: Set[str], used: Mapping[tuple[str, str], float]
) -> list[str]:
    """The datasets that the site's store can do without, the least recently used one first; ``used``: when
    a job read a dataset there last, by (dataset, site)."""
    found = [
        (max(since[site], used.get((name, site), -_INF)), name)
        for name, since in catalogue.replicas.items()
        if site in since and name not in kept
    ]
    return [name for _, name in sorted(found)]
