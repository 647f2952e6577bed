"""Copies of datasets between the stores of real sites, by the site's own commands.

The engine's thread orders copies and removals, and takes in what became of them; threads run the commands,
and the engine never waits for these.

Decisions that we took:

- A copy belongs to the run that began it. When the run ends, be it by ``kill -9``, its commands are ended
  (:mod:`headway_adapters.federation.keeper`). The next run removes what had arrived and tells the copy as
  failed. Plugins decide whether it is made again.
- A copy counts when its command has ended with 0 and, where a check is configured, when both ends have the
  same checksum. A copy that fails is removed before it is told as failed.
- Copies beyond ``transfers.parallel`` wait for their turn. They are told as on their way when their command
  begins, and have their room in the store from the decision on.
- A dataset that is being removed counts as gone from the order on: no copy is made from it, and no job that
  reads it starts there. A dataset that a running job reads is not removed.
- Of a removal that fails, the copy is compared with the original once more. If it is whole it stays,
  and the removal is told as failed. Else it is lost, and what is left of it is logged.
- What earlier runs left is looked at when a run begins: a copy that was there is compared with the first
  of its originals (without a check, its size must be above 0; without that, the journal is believed).
  While the original's check fails, the copy is not told, and the check is repeated. A copy that
  is not the same is removed and told as lost.
- In monitor mode nothing is copied and nothing removed. A copy that is not as it was is not told.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from headway import decisions as d
from headway import events as ev
from headway.adapter import KnownReplica, Oddity, copying_capabilities
from headway.errors import Failure
from headway.model.sites import Sites
from headway.model.transfers import Transfers
from headway.state.catalogue import Catalogue
from headway_adapters.federation.live_commands import Commands
from headway_adapters.federation.live_readers import Readers
from headway_adapters.federation.live_stores import Stores
from headway_adapters.federation.live_workers import Mailbox, Workers
from headway_adapters.federation.names import Elsewhere
from headway_adapters.polling.oddities import Oddities

#: Between two looks at how far the copies are, seconds; so many parts of a dataset are told at most.
_LOOKS = 30.0
_PARTS = 20
#: Removals and checks that run at the same time.
_CHORES = 4
#: Between two attempts to check an original, seconds.
_FIRST_PAUSE, _LONGEST_PAUSE = 30.0, 600.0
_ENDED = "headway ended while the copy was on its way"


@dataclass(eq=False)
class _Transfer:
    """A copy that was ordered."""

    dataset: str
    site: str
    source: str
    size: int
    #: When its command began (monotonic clock).
    began: float = 0.0
    #: Bytes that were told last.
    told: int = 0
    over: bool = False


class LiveCopies:
    """All copies of datasets of a federation of real clusters."""

    def __init__(
        self, transfers: Transfers, site_of: Callable[[str], str], stir: Callable[[], None], log: Any,
        clock: Callable[[], float], *, looks: float = _LOOKS,
    ) -> None:  # fmt: skip
        """``site_of``: the cluster that has a job. ``stir``: ends the engine's sleep. ``looks``: seconds
        between two looks at how far the copies are."""
        self.transfers = transfers
        self.capabilities = copying_capabilities(transfers)
        self._log = log
        self._looks = looks
        self._commands = Commands()
        self._stores = Stores(transfers, self._commands)
        self._readers = Readers(site_of)
        self._oddities = Oddities("transfers", clock)
        self._mailbox = Mailbox(stir)
        self._copying = Workers("copy", transfers.parallel, self._mailbox)
        self._chores = Workers("chore", _CHORES, self._mailbox)
        self._remembering = Workers("remember", _CHORES, self._mailbox)
        self._watching = Workers("progress", 1, self._mailbox)
        self._catalogue: Catalogue | None = None
        #: By dataset and site: what was ordered and is not over, and what is being removed.
        self._ordered: dict[tuple[str, str], _Transfer] = {}
        self._dropping: set[tuple[str, str]] = set()
        #: Copies whose command runs; written by the workers' threads.
        self._running: dict[tuple[str, str], _Transfer] = {}
        self._closing = threading.Event()
        self._watched = False
        #: What earlier runs left and is not looked at yet, and how much is being looked at.
        self._known: list[KnownReplica] = []
        self._unsettled = 0

    # ------------------------------------------------------------------ the engine's thread

    def begin(self, sites: Sites | None) -> None:
        """The sites as they are configured."""
        self._catalogue = Catalogue(sites) if sites is not None else None

    def remember(self, known: Sequence[KnownReplica]) -> None:
        """What earlier runs left; it is looked at from the first :meth:`take` on."""
        self._known = list(known)

    @property
    def recovering(self) -> bool:
        """Whether what earlier runs left is still being looked at."""
        return bool(self._known or self._unsettled)

    def note(self, events: Iterable[ev.Event]) -> None:
        """What is about to be told of jobs."""
        if self.capabilities:
            self._readers.note(events)

    def take(self, now: float) -> list[ev.Event]:
        """What has become of datasets."""
        known, self._known = self._known, []
        for one in known:
            self._settle(one)
        return self._mailbox.taken(now)

    def takes(self, decision: d.Decision) -> bool:
        """Whether a decision is about datasets; then it is on its way.

        Raises :class:`Elsewhere` with the reason if it is refused, also for the start of a job whose
        dataset is being removed.
        """
        if isinstance(decision, d.Start):
            self._start(decision)
            return False
        if not isinstance(decision, d.Copy | d.Drop):
            return False
        if type(decision) not in self.capabilities:
            need = "transfers.copy" if isinstance(decision, d.Copy) else "transfers.copy and transfers.remove"
            raise Elsewhere(f"{type(decision).__name__}: expected {need} and sites with stores, found none")
        if self._catalogue is None:
            raise Elsewhere("no sites are configured")
        why = self._copy(decision, self._catalogue) if isinstance(decision, d.Copy) else (
            self._drop(decision, self._catalogue)
        )  # fmt: skip
        if why:
            raise Elsewhere(why)
        return True

    def oddities(self) -> Sequence[Oddity]:
        """What an operator should know."""
        return self._oddities.shown()

    def close(self) -> None:
        """End all commands."""
        self._closing.set()
        for workers in (self._copying, self._chores, self._remembering, self._watching):
            workers.close()
        self._commands.close()

    # ------------------------------------------------------------------ orders

    def _start(self, decision: d.Start) -> None:
        job = decision.job_id
        if not (needs := self._readers.needs(job)):
            return
        site = self._readers.site_of(job)
        if gone := [dataset for dataset in needs if (dataset, site) in self._dropping]:
            raise Elsewhere(f"job {job} reads {', '.join(gone)}, which is being removed from {site}")
        self._readers.starts(job)

    def _copy(self, decision: d.Copy, catalogue: Catalogue) -> str:
        dataset, site, source = decision.dataset, decision.site, decision.source
        if why := catalogue.why_no_copy(dataset, source, site):
            return why
        if why := self._stores.why_not(source) or self._stores.why_not(site):
            return why
        for place in (source, site):
            if (dataset, place) in self._dropping:
                return f"dataset {dataset} is being removed from {place}"
        store = catalogue.store(site)
        on_their_way = sum(one.site == site for one in self._ordered.values())
        if store is not None and store.most_copies and on_their_way >= store.most_copies:
            return f"{store.most_copies} copies are on their way to {site}, as many as may be"
        catalogue.begins(dataset, site, source, 0.0)
        transfer = _Transfer(dataset, site, source, catalogue.datasets[dataset].size)
        self._ordered[dataset, site] = transfer
        self._copying.give(partial(self._carry_out, transfer))
        if self._stores.measures and not self._watched:
            self._watched = True
            self._watching.give(self._watch)
        return ""

    def _drop(self, decision: d.Drop, catalogue: Catalogue) -> str:
        dataset, site = decision.dataset, decision.site
        if (dataset, site) in catalogue.copies:
            return f"dataset {dataset} is on its way to {site}, or it is not known yet whether it is there"
        if why := catalogue.why_no_drop(dataset, site):
            return why
        if (dataset, site) in self._dropping:
            return f"dataset {dataset} is being removed from {site} already"
        if any((one.dataset, one.source) == (dataset, site) for one in self._ordered.values()):
            return f"dataset {dataset} is being copied from {site}"
        if (reader := self._readers.of(dataset, site)) is not None:
            return f"job {reader} reads dataset {dataset} at {site}"
        if why := self._stores.why_not(site):
            return why
        self._dropping.add((dataset, site))
        self._chores.give(partial(self._clear, decision, catalogue.datasets[dataset].at[0]))
        return ""

    # ------------------------------------------------------------------ a copy, on a worker's thread

    def _carry_out(self, transfer: _Transfer) -> None:
        dataset, site, source = transfer.dataset, transfer.site, transfer.source
        self._mailbox.say(partial(self._begun, transfer))
        transfer.began = time.monotonic()
        self._running[dataset, site] = transfer
        why = ""
        try:
            self._stores.copy(dataset, source, site)
            self._stores.compare(dataset, source, site)
        except Failure as error:
            if self._closing.is_set():
                raise
            why = str(error)
        finally:
            self._running.pop((dataset, site), None)
        if not why:
            self._mailbox.say(partial(self._arrived, transfer, time.monotonic() - transfer.began))
            return
        done = self._stores.size(dataset, site)
        self._mailbox.say(partial(self._broke_off, transfer, done, self._removed(dataset, site, why)))

    def _removed(self, dataset: str, site: str, why: str) -> str:
        """Remove what is there, and complete a reason with what became of that."""
        left = self._stores.remove(dataset, site)
        if not left:
            return why
        self._oddities.saw("what was left of a copy could not be removed", f"{dataset} at {site}: {left}")
        self._log.error(
            "what was left of a copy could not be removed", dataset=dataset, site=site, error=left
        )
        return f"{why}; what is left could not be removed: {left}"

    def _watch(self) -> None:
        """Tell how far copies are, on a worker's thread, until the end."""
        while not self._closing.wait(self._looks):
            for transfer in list(self._running.values()):
                done = self._stores.size(transfer.dataset, transfer.site)
                if done is not None and done - transfer.told >= max(1, transfer.size // _PARTS):
                    self._mailbox.say(partial(self._progressed, transfer, done))

    # ------------------------------------------------------------------ what became of it, as events

    def _begun(self, transfer: _Transfer, now: float) -> list[ev.Event]:
        self._log.info("a copy begins", dataset=transfer.dataset, source=transfer.source, site=transfer.site)
        return [ev.DatasetCopying(now, transfer.dataset, transfer.site, transfer.source, 0)]

    def _progressed(self, transfer: _Transfer, done: int, now: float) -> list[ev.Event]:
        if transfer.over or done <= transfer.told:
            return []
        transfer.told = done
        return [
            ev.DatasetCopying(now, transfer.dataset, transfer.site, transfer.source, min(done, transfer.size))
        ]

    def _arrived(self, transfer: _Transfer, seconds: float, now: float) -> list[ev.Event]:
        dataset, site = transfer.dataset, transfer.site
        self._over(transfer).arrives(dataset, site, now)
        self._log.info("a dataset is copied", dataset=dataset, site=site, seconds=round(seconds, 3))
        return [ev.DatasetCopied(now, dataset, site, transfer.source, seconds)]

    def _broke_off(self, transfer: _Transfer, done: int | None, why: str, now: float) -> list[ev.Event]:
        dataset, site = transfer.dataset, transfer.site
        self._over(transfer).breaks_off(dataset, site)
        self._log.warning("a copy failed", dataset=dataset, site=site, error=why)
        return [ev.CopyFailed(now, dataset, site, transfer.source, done or transfer.told, why)]

    def _over(self, transfer: _Transfer) -> Catalogue:
        transfer.over = True
        self._ordered.pop((transfer.dataset, transfer.site), None)
        assert self._catalogue is not None
        return self._catalogue

    # ------------------------------------------------------------------ removals

    def _clear(self, decision: d.Drop, original: str) -> None:
        """Remove a copy, on a worker's thread."""
        dataset, site = decision.dataset, decision.site
        why = self._stores.remove(dataset, site)
        if not why:
            self._mailbox.say(partial(self._cleared, decision, decision.reason))
            return
        whole = self._stores.checks
        try:
            self._stores.compare(dataset, original, site)
        except Failure:
            if self._closing.is_set():
                raise
            whole = False
        said = f"it could not be removed: {why}"
        self._oddities.saw("a copy could not be removed", f"{dataset} at {site}: {why}")
        self._log.error("a copy could not be removed", dataset=dataset, site=site, error=why, whole=whole)
        self._mailbox.say(partial(self._kept if whole else self._cleared, decision, said))

    def _cleared(self, decision: d.Drop, why: str, now: float) -> list[ev.Event]:
        self._dropping.discard((decision.dataset, decision.site))
        assert self._catalogue is not None
        self._catalogue.loses(decision.dataset, decision.site)
        return [ev.DatasetLost(now, decision.dataset, decision.site, why)]

    def _kept(self, decision: d.Drop, why: str, now: float) -> list[ev.Event]:
        self._dropping.discard((decision.dataset, decision.site))
        return [
            ev.DecisionFailed(now, decision, why),
            # For the next run, which would go on with the removal.
            ev.DatasetCopied(now, decision.dataset, decision.site),
        ]

    # ------------------------------------------------------------------ what earlier runs left

    def _settle(self, known: KnownReplica) -> None:
        """Look at what an earlier run left, as far as it is still configured."""
        catalogue, dataset, site = self._catalogue, known.dataset, known.site
        if catalogue is None or dataset not in catalogue.datasets or catalogue.store(site) is None:
            self._log.warning("a copy of an earlier run stays where it is: it is not configured any more",
                              dataset=dataset, site=site)  # fmt: skip
            return
        if catalogue.original(dataset, site):
            return
        if why := self._stores.why_not(site):
            self._log.warning("a copy of an earlier run cannot be looked at", dataset=dataset, site=site,
                              error=why)  # fmt: skip
            return
        if known.state != "there" and self.transfers.read_only:
            return
        # It has its room until it is known what it is.
        catalogue.begins(dataset, site, known.source, 0.0)
        self._unsettled += 1
        task = self._verify if known.state == "there" else self._give_up
        self._remembering.give(partial(task, known, catalogue.datasets[dataset].at[0]))

    def _verify(self, known: KnownReplica, original: str) -> None:
        """Whether a copy is still there, on a worker's thread."""
        dataset, site = known.dataset, known.site
        why = ""
        if self._stores.checks:
            expected = self._checksum_of(dataset, original)
            try:
                found = self._stores.checksum(dataset, site)
                if found != expected:
                    why = f"its checksum is not that of {original} any more"
            except Failure as error:
                if self._closing.is_set():
                    raise
                why = str(error)
        elif self._stores.measures and not self._stores.size(dataset, site):
            why = "nothing of it is there"
        if why and not self.transfers.read_only:
            why = self._removed(dataset, site, why)
        self._mailbox.say(partial(self._settled, known, why, 0))

    def _checksum_of(self, dataset: str, original: str) -> str:
        """An original's checksum, as soon as there is one."""
        pause = _FIRST_PAUSE
        while True:
            try:
                return self._stores.checksum(dataset, original)
            except Failure as error:
                if self._closing.is_set():
                    raise
                self._log.warning("an original cannot be checked; its copies are not told until it can",
                                  dataset=dataset, site=original, error=str(error))  # fmt: skip
            self._closing.wait(pause)
            pause = min(pause * 2, _LONGEST_PAUSE)

    def _give_up(self, known: KnownReplica, original: str) -> None:
        """Remove what is there of a copy that was on its way, or being removed; on a worker's thread."""
        done = self._stores.size(known.dataset, known.site) if known.state == "copying" else None
        why = _ENDED if known.state == "copying" else "its removal is completed"
        why = self._removed(known.dataset, known.site, why)
        self._mailbox.say(partial(self._settled, known, why, done or 0))

    def _settled(self, known: KnownReplica, why: str, done: int, now: float) -> list[ev.Event]:
        """What a copy of an earlier run is: ``why`` it is none any more, "" if it is there."""
        dataset, site = known.dataset, known.site
        self._unsettled -= 1
        assert self._catalogue is not None
        if not why:
            self._catalogue.arrives(dataset, site, now)
            return [ev.DatasetCopied(now, dataset, site)]
        self._catalogue.breaks_off(dataset, site)
        self._log.warning("a copy of an earlier run is gone", dataset=dataset, site=site, error=why)
        if self.transfers.read_only:
            # The next run that drives looks again, and clears up.
            return []
        if known.state == "copying":
            return [ev.CopyFailed(now, dataset, site, known.source, done, why)]
        return [ev.DatasetLost(now, dataset, site, why)]
