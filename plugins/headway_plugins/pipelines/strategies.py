"""AnthillSched and the strategies that its paper compares it with: a pipeline's copies, and why.

L. F. Goes and others: AnthillSched. JSSPP 2005, sections 3 and 4. AS: a copy of every filter on every
processor; BS: as many for each filter; NOAS: AnthillSched; OAS: AnthillSched, but a job whose controlled
run took less than five seconds runs with one copy of each filter; OBS: the same in front of BS.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, get_args

from headway_plugins.pipelines.pipeline import Parameters, Pipeline, said
from headway_plugins.pipelines.profiles import Profile, nearest_two, unknown
from headway_plugins.pipelines.sizing import (
    ITERATIONS,
    WEIGHTS,
    Mode,
    all_in_all,
    anthill,
    balanced,
    rounded,
)

Strategy = Literal["AS", "BS", "NOAS", "OAS", "OBS"]
STRATEGIES: tuple[Strategy, ...] = get_args(Strategy)
#: Seconds: a controlled run that took less is not worth running in parallel.
SHORT = 5.0
#: The strategies that look at profiles.
MEASURED = ("NOAS", "OAS", "OBS")


@dataclass(frozen=True)
class Rules:
    """How copies are found."""

    strategy: Strategy = "OAS"
    short: float = SHORT
    mode: Mode = "loop"
    iterations: int = ITERATIONS
    weights: tuple[float, float] = WEIGHTS
    #: Whether a filter that reads gets no more copies than nodes have its data.
    cap: bool = False


@dataclass(frozen=True)
class Sized:
    """A pipeline's copies."""

    copies: tuple[int, ...]
    reason: str
    #: One copy of each filter, because it is short.
    sequential: bool = False
    #: What they follow from: profiles and how much each counts.
    profiles: tuple[tuple[Profile, float], ...] = field(default=())


def copies_of(profile: Profile, pipeline: Pipeline, processors: int, rules: Rules) -> tuple[int, ...]:
    """AnthillSched's copies for a combination that was run."""
    return anthill(
        profile.received, profile.seconds, processors, pipeline.broadcasts, iterations=rules.iterations,
        mode=rules.mode, weights=rules.weights, caps=pipeline.caps if rules.cap else None,
    )  # fmt: skip


def interpolated(
    copies: Sequence[Sequence[int]], weights: Sequence[float], processors: int,
    caps: Sequence[int | None] | None = None,
) -> tuple[int, ...]:  # fmt: skip
    """Copies between others: their weighted means, rounded."""
    count = len(copies[0])
    means = [sum(w * some[j] for some, w in zip(copies, weights, strict=True)) for j in range(count)]
    return rounded(means, processors, caps)


def size(
    pipeline: Pipeline,
    parameters: Parameters,
    processors: int,
    profiles: Sequence[Profile],
    rules: Rules,
    source: Path | str = "profiles",
) -> Sized:
    """A job's copies. ``source``: where the profiles come from, for messages.

    Raises :class:`UserError` if the strategy needs a profile and there is none near.
    """
    strategy, filters = rules.strategy, len(pipeline.filters)
    if strategy == "AS":
        return Sized(all_in_all(filters, processors), "AS: every filter on every processor")
    if strategy == "BS":
        return Sized(balanced(filters, processors), "BS: as many copies for each filter")
    near = tuple(nearest_two(profiles, parameters))
    if not near:
        raise unknown(pipeline, parameters, source)
    wall = sum(weight * profile.wall for profile, weight in near)
    known = "measured" if near[0][0].parameters == parameters else "interpolated"
    if strategy in ("OAS", "OBS") and wall < rules.short:
        reason = f"{strategy}: one copy each, {wall:.3g} s ({known}) are less than {rules.short:g} s"
        return Sized((1,) * filters, reason, True, near)
    if strategy == "OBS":
        reason = f"OBS: as many copies for each filter, {wall:.3g} s ({known}) are not short"
        return Sized(balanced(filters, processors), reason, False, near)
    found = [copies_of(profile, pipeline, processors, rules) for profile, _ in near]
    caps = pipeline.caps if rules.cap else None
    copies = interpolated(found, [weight for _, weight in near], processors, caps)
    if known == "measured":
        reason = f"{strategy}: by shares of bytes and time of the controlled run"
    else:
        between = " and ".join(f"{said(profile.parameters)} ({weight:.0%})" for profile, weight in near)
        reason = f"{strategy}: between the controlled runs with {between}"
    return Sized(copies, reason, False, near)
