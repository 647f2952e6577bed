"""How users estimate: which values, how popular, whose, and how far from the runtimes.

The characterisation in D. Tsafrir, Y. Etsion, D. G. Feitelson, "Modeling User Runtime Estimates", JSSPP 2005,
sections 3 to 6. A *mode* is one value of the estimate; the 20 most popular ones are the *head*, the others
the *tail*. What was decided here:

- Estimates count as whole seconds. Of modes with as many jobs the longer ranks first (as the
  paper's Table 6 has it).
- *Joint ratio*: with the modes from the most popular on, the share b of the modes that has the share j of the
  jobs, where b + j = 1; between two modes in a straight line.
- A mode is *owned* if one user alone ever used it; jobs of unknown users own nothing, and spoil no owner.
- *Weeks* are of seven days from the first submission on, and count if a job was submitted in them.
- The shape a of the times t_i = t_K (a - 1) x / (a - x), x = i / K, is fitted by least squares on t. The
  shares (per cent) of the head from rank 2 on are fitted by alpha e^(beta j) + gamma, least squares; the
  shares of the tail by omega i^rho, least squares of their logarithms. R squared is that of what is fitted.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headway.workload.trace import Column, Trace

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Row = dict[str, Any]

#: Modes of the head.
HEAD = 20
#: Shares of the jobs for which the modes are counted.
COVERED = (0.1, 0.5, 0.75, 0.9, 0.95, 0.98, 0.99, 1.0)

WEEK = 7 * 86400.0
#: Points of the curve of the modes over the jobs, and of the accuracy over the runtime.
_POINTS = 100
#: Steps of a search for a minimum: a golden section each.
_STEPS = 80

#: Table -> its columns.
COLUMNS = {
    "estimate_modes": (
        "estimate", "jobs", "share", "popularity", "time_rank", "head_time_rank", "users", "owner", "weeks",
    ),
    "estimate_coverage": ("jobs_share", "modes"),
    "estimate_growth": ("jobs", "modes"),
    "estimate_accuracy": ("runtime_from", "runtime_to", "jobs", "mean_accuracy"),
}  # fmt: skip

#: Figures of :func:`estimate_study`, all None without estimates.
FIGURES = (
    "estimate_modes", "largest_estimate", "largest_estimate_share", "estimate_head_share",
    "estimate_joint_modes", "estimate_joint_jobs", "estimates_per_user", "owned_modes", "owners",
    "estimate_weeks", "estimate_shape", "head_alpha", "head_beta", "head_gamma", "head_r2", "tail_omega",
    "tail_rho", "tail_r2",
)  # fmt: skip


def estimate_study(trace: Trace) -> tuple[Row, dict[str, list[Row]]]:
    """Figures and tables on the jobs with an estimate; ``docs/outputs/study.md`` defines them."""
    records = trace.records[trace.records[:, Column.ESTIMATE] >= 0.5]
    tables: dict[str, list[Row]] = {name: [] for name in COLUMNS}
    figures: Row = dict.fromkeys(FIGURES)
    if not len(records):
        return figures, tables
    estimate = np.rint(records[:, Column.ESTIMATE])
    value, which, jobs = np.unique(estimate, return_inverse=True, return_counts=True)
    which = which.reshape(-1)
    order = np.lexsort((-value, -jobs))
    popularity = np.empty(len(value), np.int64)
    popularity[order] = np.arange(1, len(value) + 1)
    share = jobs / jobs.sum()
    users, owner = _owners(which, records[:, Column.USER], len(value))
    submit = records[:, Column.SUBMIT]
    week = np.floor((submit - submit.min()) / WEEK).astype(np.int64)
    weeks = np.bincount(_pairs(which, week)[0], minlength=len(value))
    head_rank = head_time_ranks(value, popularity)
    tables["estimate_modes"] = [
        {
            "estimate": float(value[at]),
            "jobs": int(jobs[at]),
            "share": float(share[at]),
            "popularity": int(popularity[at]),
            "time_rank": int(at) + 1,
            "head_time_rank": head_rank.get(int(at)),
            "users": int(users[at]),
            "owner": int(owner[at]) if owner[at] > 0 else None,
            "weeks": int(weeks[at]),
        }
        for at in order.tolist()
    ]
    ranked = np.sort(jobs)[::-1]
    covered = np.cumsum(ranked) / ranked.sum()
    tables["estimate_coverage"] = [
        {"jobs_share": part, "modes": int(np.searchsorted(covered, part - 1e-12) + 1)} for part in COVERED
    ]
    tables["estimate_growth"] = _growth(which)
    tables["estimate_accuracy"] = _accuracy(records[:, Column.RUNTIME], estimate)
    joint_modes, joint_jobs = joint_ratio(ranked)
    figures |= {
        "estimate_modes": len(value),
        "largest_estimate": float(value[-1]),
        "largest_estimate_share": float(share[-1]),
        "estimate_head_share": float(share[order[:HEAD]].sum()),
        "estimate_joint_modes": joint_modes,
        "estimate_joint_jobs": joint_jobs,
        "estimates_per_user": _per_user(which, records[:, Column.USER]),
        "owned_modes": int((owner > 0).sum()),
        "owners": len(np.unique(owner[owner > 0])),
        "estimate_weeks": len(np.unique(week)),
        "estimate_shape": fitted_shape(value),
    }
    figures |= _fits(100.0 * share[order])
    return figures, tables


def head_time_ranks(value: Floats, popularity: Integers) -> dict[int, int]:
    """Place of a mode -> its top-20 time rank: 0 the longest of the head, the others from 1 on."""
    head = np.flatnonzero(popularity <= HEAD).tolist()
    return {head[-1]: 0} | {at: rank for rank, at in enumerate(head[:-1], start=1)}


def joint_ratio(jobs: NDArray[Any]) -> tuple[float, float]:
    """The shares b of the modes and j of the jobs where b + j = 1; ``jobs`` of each mode, descending."""
    b = np.concatenate(([0.0], np.arange(1, len(jobs) + 1) / len(jobs)))
    j = np.concatenate(([0.0], np.cumsum(jobs) / jobs.sum()))
    at = int(np.argmax(b + j >= 1.0))
    part = (1.0 - b[at - 1] - j[at - 1]) / (b[at] + j[at] - b[at - 1] - j[at - 1])
    return float(b[at - 1] + part * (b[at] - b[at - 1])), float(j[at - 1] + part * (j[at] - j[at - 1]))


def fitted_shape(value: Floats) -> float | None:
    """a of the times, which rise to the last; None of fewer than three."""
    if len(value) < 3:
        return None
    x = np.arange(1, len(value) + 1) / len(value)

    def error(log_a: float) -> float:
        a = 1.0 + np.exp(log_a)
        return float((((a - 1.0) * x / (a - x) - value / value[-1]) ** 2).sum())

    return float(1.0 + np.exp(_lowest(error, np.log(1e-4), np.log(1e4))))


def _owners(which: Integers, user: Floats, modes: int) -> tuple[Integers, Integers]:
    """For each mode the number of its users, and its only user; -1 if it has several users or none."""
    known = user > 0
    mode, whose = _pairs(which[known], user[known].astype(np.int64))
    users = np.bincount(mode, minlength=modes)
    owner = np.full(modes, -1, np.int64)
    alone = users[mode] == 1
    owner[mode[alone]] = whose[alone]
    return users, owner


def _per_user(which: Integers, user: Floats) -> float | None:
    """Median number of different estimates of a user."""
    known = user > 0
    if not known.any():
        return None
    whose, _ = _pairs(user[known].astype(np.int64), which[known])
    return float(np.median(np.unique(whose, return_counts=True)[1]))


def _pairs(first: Integers, second: Integers) -> tuple[Integers, Integers]:
    """The different pairs of numbers from 0 on."""
    if not len(first):
        return first, second
    # One number for both, so that numbers are sorted instead of pairs: ranks, lest they overflow.
    value, rank = np.unique(second, return_inverse=True)
    pair = np.unique(first * len(value) + rank.reshape(-1))
    return pair // len(value), value[pair % len(value)]


def _growth(which: Integers) -> list[Row]:
    """How many modes the first jobs have."""
    first = np.sort(np.unique(which, return_index=True)[1])
    points = np.unique(np.rint(np.linspace(1, len(which), min(_POINTS, len(which)))).astype(np.int64))
    modes = np.searchsorted(first, points, side="left")
    return [{"jobs": int(n), "modes": int(k)} for n, k in zip(points, modes, strict=True)]


def _accuracy(runtime: Floats, estimate: Floats) -> list[Row]:
    """Mean of runtime / estimate of so many equally large groups of jobs, by runtime."""
    known = runtime >= 0
    runtime, accuracy = runtime[known], runtime[known] / estimate[known]
    order = np.argsort(runtime, kind="stable")
    return [
        {
            "runtime_from": float(runtime[group[0]]),
            "runtime_to": float(runtime[group[-1]]),
            "jobs": len(group),
            "mean_accuracy": float(accuracy[group].mean()),
        }
        for group in np.array_split(order, _POINTS)
        if len(group)
    ]


def _fits(share: Floats) -> Row:
    """The fits of the shares (per cent) by popularity."""
    found: Row = {}
    head, tail = share[1:HEAD], share[HEAD:]
    if len(head) > 3:
        rank = np.arange(2.0, 2.0 + len(head))

        def linear(beta: float) -> tuple[Floats, Floats]:
            base = np.stack((np.exp(beta * rank), np.ones(len(rank))), axis=1)
            factors = np.linalg.lstsq(base, head, rcond=None)[0]
            return factors, base @ factors

        beta = _lowest(lambda b: float(((linear(b)[1] - head) ** 2).sum()), -3.0, -1e-3)
        factors, fit = linear(beta)
        found |= {
            "head_alpha": float(factors[0]), "head_beta": beta, "head_gamma": float(factors[1]),
            "head_r2": _r_squared(head, fit),
        }  # fmt: skip
    if len(tail) > 2:
        rank, log = np.log(np.arange(HEAD + 1.0, HEAD + 1.0 + len(tail))), np.log(tail)
        rho, omega = np.polyfit(rank, log, 1)
        found |= {
            "tail_omega": float(np.exp(omega)), "tail_rho": float(rho),
            "tail_r2": _r_squared(log, omega + rho * rank),
        }  # fmt: skip
    return found


def _r_squared(value: Floats, fit: Floats) -> float | None:
    spread = float(((value - value.mean()) ** 2).sum())
    return 1.0 - float(((value - fit) ** 2).sum()) / spread if spread > 0 else None


def _lowest(function: Callable[[float], float], low: float, high: float) -> float:
    """Where a function of one valley has its lowest point, by golden sections."""
    golden = (np.sqrt(5.0) - 1.0) / 2.0
    left, right = high - golden * (high - low), low + golden * (high - low)
    at_left, at_right = function(left), function(right)
    for _ in range(_STEPS):
        if at_left <= at_right:
            high, right, at_right = right, left, at_left
            left = high - golden * (high - low)
            at_left = function(left)
        else:
            low, left, at_left = left, right, at_right
            right = low + golden * (high - low)
            at_right = function(right)
    return float((low + high) / 2.0)
