"""Datasets and their copies, event by event; and copies that were decided."""

from __future__ import annotations

from headway import events as ev
from headway.decisions import Copy
from headway.errors import StateError
from headway.state.catalogue import Catalogue
from headway.state.facts import Facts
from headway.state.moves import Undo


def begin_copy(state: Facts, decision: Copy) -> Undo:
    """The copy is on its way.

    Raises :class:`headway.errors.StateError`, and changes nothing, if there can be no such copy
    (:meth:`Catalogue.why_no_copy`).
    """
    catalogue = state.catalogue
    if catalogue is None:
        raise StateError("no sites are configured")
    dataset, site = decision.dataset, decision.site
    if why := catalogue.why_no_copy(dataset, decision.source, site):
        raise StateError(why)
    catalogue.begins(dataset, site, decision.source, state.now)
    return lambda: catalogue.breaks_off(dataset, site)


def copy_not_begun(state: Facts, decision: Copy) -> None:
    """The cluster refused it."""
    if state.catalogue is not None:
        state.catalogue.breaks_off(decision.dataset, decision.site)


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
    if (catalogue := _of_known(state, event.dataset, event.site)) is not None:
        catalogue.begins(event.dataset, event.site, event.source, event.time).done = event.done


def copied(state: Facts, event: ev.DatasetCopied) -> None:
    """A site has a dataset."""
    if (catalogue := _of_known(state, event.dataset, event.site)) is not None:
        catalogue.arrives(event.dataset, event.site, event.time)


def lost(state: Facts, event: ev.DatasetLost) -> None:
    """A site has a dataset no more."""
    if (catalogue := _of_known(state, event.dataset, event.site)) is not None:
        catalogue.loses(event.dataset, event.site)


def copy_failed(state: Facts, event: ev.CopyFailed) -> None:
    """A copy broke off."""
    if (catalogue := _of_known(state, event.dataset, event.site)) is not None:
        catalogue.breaks_off(event.dataset, event.site)
