"""Giving the clusters of a configuration back, and keeping out of the way of a daemon that drives them.

Two things say whether a daemon drives: the journal's lock, which no two processes hold, and the sign of life
that each cluster's adapter knows. With the lock nobody else can begin to drive. Without it (``--if-silent``
while a daemon hangs) the sign of life is looked for before each thing that is changed.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import msgspec

from headway.adapter import Given, GivingBack
from headway.config import Config, live_options
from headway.errors import Failure, HeadwayError, Held, UserError
from headway.journal import Journal
from headway.journal.alone import alone
from headway.model.modes import Mode

#: A process that has the journal is given so long for a sign of life, seconds: it may have come just now, or
#: its batch system may have answered again just now.
GRACE = 60.0


class Report(msgspec.Struct, frozen=True):
    """What ``headway give-back`` did."""

    #: ``nothing``: a daemon drives. ``interrupted``: a daemon came back meanwhile. ``failed``: something
    #: could not be given back; the rest was.
    outcome: Literal["given back", "nothing", "interrupted", "failed"]
    things: tuple[Given, ...] = ()
    #: What an administrator has to do now, in sentences.
    left_to_do: tuple[str, ...] = ()
    #: Clusters that could not be given back, and why.
    failures: tuple[str, ...] = ()

    @property
    def failed(self) -> bool:
        """Whether something could not be given back."""
        return _failed(self.failures, self.things)


def _failed(failures: Sequence[str], things: Sequence[Given]) -> bool:
    return bool(failures) or any(one.result == "failed" for one in things)


@dataclass(frozen=True)
class _Cluster:
    #: Of several clusters, its name; else "".
    name: str
    giving: GivingBack
    pools: tuple[str, ...]

    @property
    def whole(self) -> bool:
        """Whether all that headway drives there is given back."""
        return set(self.pools) == set(self.giving.pools)


def give_back(
    config: Config,
    pools: Sequence[str] | None,
    *,
    dry_run: bool = False,
    if_silent: bool = False,
    force: bool = False,
    tell: Callable[[Given], None] = lambda given: None,
    pause: Callable[[float], None] = time.sleep,
) -> Report:
    """Give pools back (of several clusters ``cluster:pool``; None: all).

    ``if_silent``: only where the daemon gave no sign of life for as long as the options say. ``force``: also
    while a daemon drives. ``tell`` is told of each thing as it is given back.

    Raises :class:`UserError` for pools, clusters and options that do not fit, :class:`Held` while a daemon
    drives.
    """
    with contextlib.ExitStack() as stack:
        clusters = [
            each for each in _clusters(config, pools, stack, dry_run=dry_run)
            if not if_silent or _is_silent(config, each)
        ]  # fmt: skip
        if not clusters:
            return Report("nothing")
        locked = stack.enter_context(_lock(config, if_silent=if_silent, force=force or dry_run))
        if if_silent and not locked:
            clusters = _still_silent(config, clusters, pause)
            if not clusters:
                return Report("nothing")
        return _given_back(config, clusters, locked=locked or force, if_silent=if_silent, tell=tell)


def _given_back(
    config: Config, clusters: Sequence[_Cluster], *, locked: bool, if_silent: bool,
    tell: Callable[[Given], None],
) -> Report:  # fmt: skip
    things: list[Given] = []
    failures: list[str] = []
    back = False
    for cluster in clusters:

        def go_on(cluster: _Cluster = cluster) -> bool:
            nonlocal back
            back = back or (if_silent and not _is_silent(config, cluster))
            return not back

        if locked and cluster.whole and (problem := _stand_down(cluster)):
            failures.append(problem)
        try:
            for one in cluster.giving.give_back(cluster.pools, go_on):
                one = msgspec.structs.replace(one, cluster=cluster.name)
                things.append(one)
                tell(one)
        except UserError:
            raise
        except HeadwayError as error:
            failures.append(_failure(cluster, str(error)))
    left = dict.fromkeys(line for each in clusters for line in each.giving.left_to_do(each.pools))
    outcome: Literal["given back", "interrupted", "failed"] = "given back"
    if back or _failed(failures, things):
        outcome = "interrupted" if back else "failed"
    return Report(outcome, tuple(things), tuple(left), tuple(failures))


def _stand_down(cluster: _Cluster) -> str:
    """Tell those that hold jobs for headway that it rests; what went wrong, "" if nothing did.

    Before anything else, so that no more jobs are held meanwhile. What is held is given back all the same."""
    try:
        cluster.giving.stand_down()
    except Failure as error:
        return _failure(
            cluster,
            f"{error}. So jobs that come now are held until headway was silent for its patience: mend it, or "
            "give back again after that",
        )
    return ""


def _failure(cluster: _Cluster, said: str) -> str:
    return f"{cluster.name}: {said}" if cluster.name else said


def giving(
    config: Config, stack: contextlib.ExitStack, *, dry_run: bool = False
) -> Iterator[tuple[str, GivingBack]]:
    """What gives each cluster back, which ``stack`` closes, and of several clusters its name ("" of one).

    Raises :class:`UserError` for a cluster that has nothing to give back."""
    names = list(config.clusters) or [""]
    for name, (where, cluster) in zip(names, config.clusters_by_place(), strict=True):
        kind, options = live_options(config.adapters, cluster, where)
        if kind.gives_back is None:
            raise UserError(f"{where}.adapter: {cluster.adapter!r} has nothing that can be given back")
        yield name, stack.enter_context(kind.gives_back(options, dry_run=dry_run))


def full_name(cluster: str, pool: str) -> str:
    """What a person calls a pool."""
    return f"{cluster}:{pool}" if cluster else pool


def _clusters(
    config: Config, pools: Sequence[str] | None, stack: contextlib.ExitStack, *, dry_run: bool
) -> Iterator[_Cluster]:
    """The clusters of which a pool is asked for."""
    left = set(pools or ())
    for name, own in giving(config, stack, dry_run=dry_run):
        asked = tuple(pool for pool in own.pools if pools is None or full_name(name, pool) in left)
        left.difference_update(full_name(name, pool) for pool in asked)
        if asked:
            yield _Cluster(name, own, asked)
    if left:
        raise UserError(
            f"{config.source}: no pool is called {min(left)!r}; `headway give-back --all` takes all"
        )


def _is_silent(config: Config, cluster: _Cluster) -> bool:
    silent = cluster.giving.is_silent()
    if silent is None:
        where = f"clusters.{cluster.name}" if cluster.name else "cluster"
        raise UserError(
            f"{config.source}: {where}.options: expected a heartbeat (a file) and a patience above 0 for "
            "--if-silent, found none"
        )
    return silent


@contextlib.contextmanager
def _lock(config: Config, *, if_silent: bool, force: bool) -> Iterator[bool]:
    """Keep daemons from beginning to drive meanwhile; False: a process has the journal, and may go on."""
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(alone(config.journal))
        except Held as error:
            if not (if_silent or force) and _drives(config):
                raise Held(
                    f"{config.source}: a daemon drives with this configuration, and would take back what is "
                    f"given back: {error} Or give back all the same, with --force."
                ) from error
            yield False
            return
        yield True


def _drives(config: Config) -> bool:
    """Whether the process that has the journal changes the cluster, as far as can be told."""
    try:
        with Journal.open(config.journal, create=False, read_only=True) as journal:
            run = journal.last_run()
    except HeadwayError:
        return True
    return run is None or run.info.mode == Mode.DRIVE


def _still_silent(
    config: Config, clusters: Sequence[_Cluster], pause: Callable[[float], None]
) -> list[_Cluster]:  # fmt: skip
    """The clusters whose daemon, which is there, gives no sign of life for a while."""
    left = list(clusters)
    for each in left:
        if not each.giving.was_heard():
            raise Failure(
                f"{config.source}: a process has the journal, and no heartbeat was ever written where this "
                "configuration says: nothing is given back"
            )
    end = time.monotonic() + GRACE
    while left and time.monotonic() < end:
        pause(1.0)
        left = [each for each in left if _is_silent(config, each)]
    return left
