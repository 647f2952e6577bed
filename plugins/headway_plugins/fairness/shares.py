"""Fairness to a site's shares: what each user deserved of the processors in use, and what the user got.

Resource equality (:mod:`headway_plugins.fairness.equality`) is among jobs and knows no shares. Where a site
has set some, the same is asked of users. At each moment the processors in use are divided among the users
with jobs present, waiting or running, in proportion to their shares. No user is given more than the user's
jobs ask for. What a user does not need goes to the other users, in proportion to their shares (weighted
max-min fairness). What is idle is not divided, so all differences together are 0, and a site where no job
ever waits is fair.

Ours, not the paper's. Decisions:

- A user's weight is the user's part of the whole tree: the product, from the root down, of the parts that the
  accounts and the user have of their siblings' shares. Users without shares of their own (``parent``) divide
  their account's equally.
- A user in two accounts counts as two users, since the shares differ. A user that is not listed has the
  shares that the tree gives to strangers.
- Present, in use: as for resource equality. What was used before the run counts for nothing here: this is
  no fair share with a memory.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pydantic
from numpy.typing import NDArray

from headway.errors import UserError
from headway.metrics import JobColumns, job_columns
from headway.results import RunResult
from headway_plugins.accounts.counting import CountingOptions
from headway_plugins.accounts.options import is_from_slurm
from headway_plugins.accounts.tree import NOBODY, Shape, Tree
from headway_plugins.fairness.equality import presence

Floats = NDArray[np.float64]

#: Spans between two events that are looked at together.
_TOGETHER = 4096


@dataclass(frozen=True)
class Standing:
    """A user in an account."""

    account: str
    user: str
    #: Part of the whole, 0 to 1.
    share: float
    jobs: int
    #: Processor-seconds.
    deserved: float
    got: float


def tree_of(result: RunResult) -> Tree | None:
    """The accounts that the run's configuration lists for its fair share; None: it lists none.

    Raises :class:`UserError` if they cannot be read again, or were the running batch system's.
    """
    for name, options in result.plugins:
        if "accounts" not in options and "file" not in options:
            continue
        if is_from_slurm(options.get("accounts")):
            raise UserError(
                f"plugin {name!r}: accounts: a run in emulation does not know the batch system's accounts"
            )
        told = {key: options[key] for key in ("accounts", "file", "unknown_shares") if key in options}
        try:
            return CountingOptions.model_validate(told).tree()
        except pydantic.ValidationError:
            continue
    return None


def against_shares(result: RunResult, tree: Tree, columns: JobColumns | None = None) -> list[Standing]:
    """All users with jobs, first the users that got least of what they deserved. ``tree``: grows by the users
    that it does not know."""
    columns = columns or job_columns(result)
    count = len(columns.submit)
    if not count:
        return []
    nodes = np.array(
        [tree.node(job.job.account, job.job.group, job.job.user)[0] for job in result.jobs], np.int64
    )
    known, whose = np.unique(nodes, return_inverse=True)
    weights = parts_of_whole(tree.shape())[known]
    size = columns.processors.astype(np.float64)
    here, gone, present, rows, since, until = presence(result, columns)
    times = np.unique(np.concatenate([here[present], gone[present], since, until]))
    deserved = np.zeros(len(known))
    if len(times) > 1:
        use, asked = np.zeros(len(known)), np.zeros(len(known))
        begins = _changes(times, here[present], size[present], whose[present])
        ends = _changes(times, gone[present], -size[present], whose[present])
        starts = _changes(times, since, size[rows], whose[rows])
        stops = _changes(times, until, -size[rows], whose[rows])
        for first in range(0, len(times) - 1, _TOGETHER):
            last = min(first + _TOGETHER, len(times) - 1)
            demand = _levels(asked, (begins, ends), first, last)
            taken = _levels(use, (starts, stops), first, last)
            asked, use = demand[-1].copy(), taken[-1].copy()
            some = np.flatnonzero(demand.any(axis=0))
            given, amount = demand[:, some], taken.sum(axis=1)
            # Where no job waits each user has what the user's jobs ask for.
            short = amount < given.sum(axis=1)
            given[short] = divided(amount[short], given[short], weights[some])
            deserved[some] += np.diff(times[first : last + 1]) @ given
    got = np.bincount(whose[rows], size[rows] * (until - since), len(known))
    jobs = np.bincount(whose, minlength=len(known))
    found = [
        Standing(
            tree.entries[node].account, _user(tree.entries[node].user), float(weights[at]), int(jobs[at]),
            float(deserved[at]), float(got[at]),
        )
        for at, node in enumerate(known.tolist())
    ]  # fmt: skip
    return sorted(found, key=lambda one: one.got - one.deserved)


def _user(name: str) -> str:
    return "" if name == NOBODY else name


def parts_of_whole(shape: Shape) -> Floats:
    """Each node's part of the whole, 0 to 1."""
    found = np.ones(len(shape.part))
    users = shape.users
    for level in shape.levels:
        above = shape.parent[level]
        own = np.where(shape.joint[level], 1.0 / np.maximum(users[above], 1.0), shape.part[level])
        found[level] = found[above] * own
    return found


def divided(amount: Floats, demand: Floats, weights: Floats) -> Floats:
    """Each row's amount among its columns, in proportion to their weights and none above its demand.

    ``amount``: a value a row, at most the sum of its demands; ``demand``: rows x columns; ``weights``: a
    value a column; columns without weight get what the other columns leave, in proportion to their demands.
    """
    weighted = weights > 0
    given = np.zeros_like(demand)
    if weighted.any():
        given[:, weighted] = _filled(amount, demand[:, weighted], weights[weighted])
    if not weighted.all():
        rest = demand[:, ~weighted]
        left = np.maximum(amount - given.sum(axis=1), 0.0)
        wanted = rest.sum(axis=1)
        part = np.divide(left, wanted, out=np.zeros_like(left), where=wanted > 0)
        given[:, ~weighted] = rest * np.minimum(part, 1.0)[:, None]
    return given


def _filled(amount: Floats, demand: Floats, weights: Floats) -> Floats:
    """The level that each row is filled to: sum of min(demand, weight x level) = amount."""
    until = demand / weights
    order = np.argsort(until, axis=1)
    sorted_until = np.take_along_axis(until, order, axis=1)
    satisfied = np.cumsum(np.take_along_axis(demand, order, axis=1), axis=1)
    behind = np.cumsum(weights[order][:, ::-1], axis=1)[:, ::-1]
    # What is given if all columns are filled up to the place of each column.
    before = np.concatenate([np.zeros((len(demand), 1)), satisfied[:, :-1]], axis=1)
    needed = before + behind * sorted_until
    enough = needed >= amount[:, None]
    at = np.where(enough.any(axis=1), enough.argmax(axis=1), demand.shape[1] - 1)
    row = np.arange(len(demand))
    level = (amount - before[row, at]) / behind[row, at]
    return np.minimum(demand, weights * np.maximum(level, 0.0)[:, None])


@dataclass(frozen=True)
class _Changes:
    """By how much something changes for which user, in order of the times."""

    span: NDArray[np.int64]
    amount: Floats
    whose: NDArray[np.int64]


def _changes(times: Floats, when: Floats, amount: Floats, whose: NDArray[np.int64]) -> _Changes:
    span = np.searchsorted(times, when)
    order = np.argsort(span, kind="stable")
    return _Changes(span[order], amount[order], whose[order])


def _levels(before: Floats, changes: tuple[_Changes, ...], first: int, last: int) -> Floats:
    """Spans x users from ``first`` up to ``last``, what was before being ``before``."""
    found = np.zeros((last - first, len(before)))
    found[0] = before
    for one in changes:
        low, high = np.searchsorted(one.span, (first, last))
        np.add.at(found, (one.span[low:high] - first, one.whose[low:high]), one.amount[low:high])
    return np.cumsum(found, axis=0)
