"""Datasets and their copies, event by event; and copies that were decided."""

from __future__ import annotations

from headway import events as ev
from headway.decisions import Copy
from headway.errors import StateError
from headway.state.catalogue import Catalogue, Copying
from headway.state.facts import Facts
from headway.state.moves import Undo


def begin_copy(state: Facts, decision: Copy) -> Undo:
    """The copy is on its way.

    Raises :class:`headway.errors.StateError`, and changes nothing, if the site has the dataset, gets it, has
    no room for it, or if the source cannot give it.
    """
    catalogue = state.catalogue
    if catalogue is None:
        raise StateError("no sites are configured")
    if why := _why_not(catalogue, decision):
        raise StateError(why)
    key = decision.dataset, decision.site
    catalogue.copies[key] = Copying(decision.dataset, decision.site, decision.source, state.now)
    catalogue.version += 1

    def undo() -> None:
        catalogue.copies.pop(key, None)
        catalogue.version += 1

    return undo


def _why_not(catalogue: Catalogue, copy: Copy) -> str:
    """Why there can be no such copy now; "" if there can."""
    dataset, site = copy.dataset, copy.site
    if dataset not in catalogue.datasets:
        return f"there is no dataset {dataset!r}"
    if catalogue.store(site) is None:
        return f"there is no store at {site!r}"
    if catalogue.has(dataset, site):
        return f"{site} has dataset {dataset} already"
    if (dataset, site) in catalogue.copies:
        return f"dataset {dataset} is on its way to {site} already"
    if not catalogue.has(dataset, copy.source):
        return f"{copy.source} does not have dataset {dataset}"
    if catalogue.seconds(dataset, copy.source, site) == float("inf"):
        return f"there is no link from {copy.source} to {site}"
    size, room = catalogue.datasets[dataset].size, catalogue.room(site)
    if size > room:
        return f"the store of {site} has room for {room:.0f} bytes, and dataset {dataset} has {size}"
    return ""


def copy_not_begun(state: Facts, decision: Copy) -> None:
    """The cluster refused it."""
    catalogue = state.catalogue
    if catalogue is not None and (decision.dataset, decision.site) in catalogue.copies:
        del catalogue.copies[decision.dataset, decision.site]
        catalogue.version += 1


def _of_known(state: Facts, dataset: str, site: str) -> Catalogue | None:
    """The catalogue, if it knows both; else an anomaly."""
    catalogue = state.catalogue
    if catalogue is not None and dataset in catalogue.datasets and site in catalogue.sites:
        return catalogue
    state.anomalies.append(
        f"dataset {dataset!r} at site {site!r} was told of, which is not configured; ignored"
    )
    return None


def copying(state: Facts, event: ev.DatasetCopying) -> None:
    """A copy is on its way, and is so far."""
    if (catalogue := _of_known(state, event.dataset, event.site)) is None:
        return
    key = event.dataset, event.site
    known = catalogue.copies.get(key)
    if known is None:
        known = catalogue.copies[key] = Copying(event.dataset, event.site, event.source, event.time)
        catalogue.version += 1
    known.done, known.told = event.done, True


def copied(state: Facts, event: ev.DatasetCopied) -> None:
    """A site has a dataset."""
    if (catalogue := _of_known(state, event.dataset, event.site)) is None:
        return
    catalogue.copies.pop((event.dataset, event.site), None)
    catalogue.replicas[event.dataset].setdefault(event.site, event.time)
    catalogue.version += 1


def lost(state: Facts, event: ev.DatasetLost) -> None:
    """A site has a dataset no more."""
    if (catalogue := _of_known(state, event.dataset, event.site)) is None:
        return
    catalogue.replicas[event.dataset].pop(event.site, None)
    catalogue.version += 1


def copy_failed(state: Facts, event: ev.CopyFailed) -> None:
    """A copy broke off."""
    if (catalogue := _of_known(state, event.dataset, event.site)) is None:
        return
    if catalogue.copies.pop((event.dataset, event.site), None) is not None:
        catalogue.version += 1
