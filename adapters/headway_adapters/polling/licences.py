"""What hidden jobs have of what belongs to no node: it is not there for the jobs that are shown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterator, Mapping

from headway.adapter.migration import ON_NODES
from headway_adapters.polling.snapshot import SnapshotJob


def licences_elsewhere(jobs: Mapping[str, SnapshotJob], pools: Container[str]) -> dict[str, Counter[str]]:
    """What running jobs of other ``pools`` have of each licence, by their reservation ("": none)."""
    taken: dict[str, Counter[str]] = {}
    for job in jobs.values():
        wanted = job.job.request.licences
        if wanted and job.state in ON_NODES and job.job.pool not in pools:
            taken.setdefault(job.job.reservation, Counter()).update(dict(wanted))
    return taken


def less(amounts: tuple[tuple[str, int], ...], taken: Mapping[str, int]) -> tuple[tuple[str, int], ...]:
    """What is left of amounts by name; names of which nothing is left are left out."""
    left = ((name, amount - taken.get(name, 0)) for name, amount in amounts)
    return tuple((name, amount) for name, amount in left if amount > 0)


def left_here(total: Mapping[str, int], elsewhere: Mapping[str, Counter[str]]) -> dict[str, int]:
    """How much of each licence is there for the jobs that are shown; at least 0."""
    taken = sum(elsewhere.values(), Counter[str]())
    return {name: max(amount - taken[name], 0) for name, amount in total.items()}


def asked_for(
    total: Mapping[str, int], jobs: Mapping[str, SnapshotJob], told: Container[str]
) -> dict[str, int]:
    """The licences that any of the ``jobs`` asks for or that were ``told`` before. An amount of any other
    licence may change all the time and is no news."""
    wanted = {name for job in jobs.values() for name, _ in job.job.request.licences}
    return {name: amount for name, amount in total.items() if name in wanted or name in told}


def for_ours(
    total: Mapping[str, int],
    jobs: Mapping[str, SnapshotJob],
    pools: Container[str],
    *,
    first: bool,
    notes: set[str],
) -> Mapping[str, int]:
    """How much of each licence is there for the jobs of our ``pools``, by all ``jobs`` that have some; at a
    ``first`` look it is noted of which more is in use than there is."""
    if first and total:
        notes.update(too_few(total, sum(licences_elsewhere(jobs, ()).values(), Counter[str]())))
    return left_here(total, licences_elsewhere(jobs, pools))


def too_few(total: Mapping[str, int], used: Mapping[str, int]) -> Iterator[str]:
    """A sentence for each licence of which more is in use than there is."""
    for name, amount in used.items():
        if name in total and amount > total[name]:
            yield (
                f"licence {name!r}: {amount} are in use and there are only {total[name]}; no job starts "
                "with this licence until enough are free again"
            )


def other_amounts(before: Mapping[str, int], now: Mapping[str, int]) -> dict[str, int]:
    """Licences whose amount has changed, without licences that are not there any more."""
    return {
        name: now.get(name, 0) for name in dict.fromkeys((*before, *now)) if before.get(name) != now.get(name)
    }
