"""The users: an endless, seeded stream of mixed jobs, and what they do to them.

The n-th job of a seed is always the same one; when it is submitted depends on how fast the machine is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

#: How far back a dependency reaches: batch systems forget jobs that ended long ago.
REACH = 6

Kind = Literal["cancel", "cancel-elements", "hold", "release", "requeue"]


@dataclass(frozen=True)
class Act:
    """Something that is done to a submitted job.

    ``after``: seconds after its submission; of a requeue after it was first seen to run.
    """

    kind: Kind
    after: float
    elements: tuple[int, ...] = ()


@dataclass(frozen=True)
class Wanted:
    """A job: ``chunks`` shares of ``share`` processors each, for so many seconds.

    ``spread``: each chunk on a node of its own. ``elements``: those of a job array, 1, 2, ...; 0: no array.
    ``after``: the number of the job that it depends on, which with ``after_ok`` must succeed.
    ``overruns``: it runs until its time limit ends it.
    """

    number: int
    user: int
    chunks: int
    share: int
    spread: bool
    seconds: float
    exit_code: int = 0
    overruns: bool = False
    elements: int = 0
    after: int | None = None
    after_ok: bool = False
    held: bool = False
    acts: tuple[Act, ...] = ()

    @property
    def name(self) -> str:
        return f"t{self.number}"

    @property
    def processors(self) -> int:
        return self.chunks * self.share

    @property
    def keys(self) -> list[str]:
        """What its runs are known by: its name, with the number of the element for arrays."""
        return [self.key(n) for n in range(1, self.elements + 1)] if self.elements else [self.name]

    def key(self, element: int) -> str:
        return f"{self.name}.{element}" if self.elements else self.name


@dataclass(frozen=True)
class Shape:
    """What a job may ask of a system: its chunks, the processors of each, and whether they are spread."""

    chunks: int
    share: int
    spread: bool
    weight: float


_KINDS = {
    "plain": 0.34, "fails": 0.06, "overruns": 0.02, "array": 0.10, "array-cancelled": 0.04,
    "array-thinned": 0.06, "dependent": 0.12, "held": 0.07, "hold-release": 0.05, "requeued": 0.07,
    "cancelled": 0.07,
}  # fmt: skip


def _acts(kind: str, a: float, b: float) -> tuple[Act, ...]:
    """What its user does with a job of this kind, ``a`` and ``b`` seconds in; arrays aside."""
    acts: dict[str, tuple[Act, ...]] = {
        "held": (Act("release", a),),
        "hold-release": (Act("hold", a / 3), Act("release", a / 3 + b)),
        "requeued": (Act("requeue", a / 3),),
        "cancelled": (Act("cancel", a),),
    }
    return acts.get(kind, ())


def _array(rng: np.random.Generator, kind: str, after: float) -> dict[str, object]:
    """The elements of an array, and what its user does ``after`` so many seconds."""
    elements = int(rng.integers(3, 9))
    acts: tuple[Act, ...] = ()
    if kind == "array-cancelled":
        acts = (Act("cancel", after),)
    elif kind == "array-thinned":
        first = int(rng.integers(1, elements))
        last = int(rng.integers(first, elements + 1))
        acts = (Act("cancel-elements", after, tuple(range(first, last + 1))),)
    return {"elements": elements, "acts": acts}


def stream(
    seed: int, shapes: list[Shape], without: frozenset[str] = frozenset(), *, longest: float = 9.0
) -> Iterator[Wanted]:
    """Jobs without end; those of the kinds ``without`` are plain jobs instead.

    ``longest``: seconds that none exceeds but those that overrun; one that is requeued takes two thirds of it
    at least.
    """
    rng = np.random.default_rng([seed, 1])
    weights = np.array([shape.weight for shape in shapes])
    kinds, odds = list(_KINDS), np.array(list(_KINDS.values()))
    #: Whether each of the last jobs can be depended on, by number.
    plain: dict[int, bool] = {}
    number = 0
    while True:
        number += 1
        kind = str(rng.choice(kinds, p=odds / odds.sum()))
        shape = shapes[int(rng.choice(len(shapes), p=weights / weights.sum()))]
        user, seconds = int(rng.integers(2)), float(rng.choice([1.0, 2.0, 3.0, 4.0, 6.0, 9.0]))
        seconds = min(seconds, longest)
        a, b = float(rng.uniform(0.5, 6.0)), float(rng.uniform(1.0, 8.0))
        if kind in without:
            kind = "plain"
        extra: dict[str, object] = {"acts": _acts(kind, a, b)}
        if kind == "fails":
            extra = {"exit_code": int(rng.integers(1, 100))}
        elif kind == "overruns":
            extra = {"overruns": True}
            shape, seconds = shapes[0], 600.0
        elif kind.startswith("array"):
            shape = shapes[0]
            extra = {**_array(rng, kind, a), "seconds": min(seconds, 4.0)}
        elif kind == "dependent":
            near = [n for n in plain if n >= number - REACH]
            if near:
                extra = {"after": int(rng.choice(near)), "after_ok": bool(rng.random() < 0.5)}
        elif kind == "held":
            extra["held"] = True
        elif kind == "requeued":
            extra["seconds"] = max(seconds, longest * 2 / 3)
        if kind in ("plain", "fails", "dependent"):
            plain[number] = True
        spread = {"chunks": shape.chunks, "share": shape.share, "spread": shape.spread, "seconds": seconds}
        yield Wanted(number=number, user=user, **{**spread, **extra})  # type: ignore[arg-type]
