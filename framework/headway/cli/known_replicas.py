"""Which copies of datasets are where, for commands that look at clusters themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headway.cli.common import messages, say
from headway.cli.earlier_runs import may_have_journal
from headway.errors import Failure, HeadwayError

if TYPE_CHECKING:
    from headway.config import Config
    from headway.inquiry.reports import DatasetList
    from headway.model.sites import Replica

#: How long the daemon may take, seconds: it answers from memory.
_PATIENCE = 5.0


def known_replicas(config: Config) -> list[Replica]:
    """The copies that the running daemon knows; where none answers, the copies that the journal's last run
    had. Says which of these it is, unless the daemon answers or no datasets are configured."""
    if not config.datasets:
        return []
    if (told := _of_daemon(config)) is not None:
        return told
    found = _of_journal(config)
    if found is None:
        assumed = "no daemon and no journal tell of them, so each is only where it was from the beginning"
    else:
        assumed = "no daemon answers, so copies are where the last recorded run had them"
    say(f"Datasets: {assumed}.", messages(), style="yellow")
    return found or []


def _of_daemon(config: Config) -> list[Replica] | None:
    from headway.inquiry.reports import DatasetList
    from headway.service.client import ask
    from headway.service.protocol import Datasets

    path = config.socket_path()
    if path is None or not path.exists():
        return None
    try:
        found = ask(path, Datasets(), timeout=_PATIENCE, patience=0.0).found
    except Failure:
        return None
    return _replicas(found) if isinstance(found, DatasetList) else None


def _replicas(found: DatasetList) -> list[Replica]:
    from headway.model.sites import Replica

    there = [
        Replica(dataset.name, one.site, one.since)
        for dataset in found.datasets
        for one in dataset.at
        if one.since is not None
    ]
    coming = [
        Replica(dataset.name, one.site, one.since, one.source, one.done)
        for dataset in found.datasets
        for one in dataset.copies
    ]
    return [*there, *coming]


def _of_journal(config: Config) -> list[Replica] | None:
    """What the runs before left; what was on its way when the last one ended is not there."""
    from headway.journal import Journal
    from headway.model.sites import Replica

    if not may_have_journal(config.journal):
        return None
    try:
        with Journal.open(config.journal, create=False, read_only=True) as journal:
            if journal.last_run() is None:
                return None
            known = journal.replicas()
    except HeadwayError:
        return None
    return [Replica(one.dataset, one.site) for one in known if one.state == "there"]
