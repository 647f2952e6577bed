"""Which of two places is better for a job, and why, in words.

The criteria are looked at in their order. The first that differs by its least gain decides; all later ones do
not count. A share is one of the larger value, so that a move and the move back never both gain.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from headway.report.quantities import duration
from headway_plugins.sites.options import IN_SECONDS, Criterion, FollowOptions
from headway_plugins.sites.prospects import Prospect

_INF = float("inf")


def _calendar(one: Prospect) -> float:
    return one.opens_in + one.beyond


#: What counts of a place; less is better.
_VALUES: dict[Criterion, Callable[[Prospect], float]] = {
    "calendar": _calendar,
    "load": lambda one: one.start,
    "data": lambda one: one.copying,
    "price": lambda one: one.price,
    "carbon": lambda one: one.carbon,
}


def deciding(here: Prospect, there: Prospect, options: FollowOptions) -> tuple[Criterion | None, float]:
    """What decides between two places, and the gain of going there: positive if it is better there. None:
    nothing does."""
    for name in options.by:
        value = _VALUES[name]
        ours, theirs = value(here), value(there)
        if ours == theirs:
            continue
        gain = ours - theirs
        if name in IN_SECONDS:
            least = options.gain
        else:
            gain, least = gain / max(abs(ours), abs(theirs)), options.share
        if abs(gain) >= least:
            return name, gain
    return None, 0.0


def best(places: Iterable[Prospect], options: FollowOptions) -> Prospect | None:
    """The best of several places, the first where nothing decides; None of none."""
    found: Prospect | None = None
    for one in places:
        if found is None or deciding(found, one, options)[1] > 0:
            found = one
    return found


def no_gain_possible(here: Prospect, now: float, options: FollowOptions) -> bool:
    """Whether no place can be better than this one, whatever it is like."""
    most: dict[Criterion, float] = {
        "calendar": _calendar(here), "load": here.start - now, "data": here.copying
    }  # fmt: skip
    return all(most.get(name, _INF) < max(options.gain, 1e-9) for name in options.by)


def in_words(by: Criterion, here: Prospect, there: Prospect, now: float) -> str:
    """How two places compare by a criterion."""
    if by == "calendar":
        return f"{there.site} {_open(there)}, {here.site} {_open(here)}"
    if by == "load":
        return f"it is expected to start at {there.site} {_in(there, now)}, at {here.site} {_in(here, now)}"
    if by == "data":
        return f"{there.site} {_has(there)}, {here.site} {_has(here)}"
    what = "costs" if by == "price" else "emits"
    ours, theirs = _VALUES[by](here), _VALUES[by](there)
    return f"a processor-hour of its run {what} {theirs:.4g} at {there.site}, {ours:.4g} at {here.site}"


def _open(one: Prospect) -> str:
    if one.opens_in == _INF:
        return "is closed"
    if one.opens_in > 0:
        return f"opens in {duration(one.opens_in)}"
    return "stays open" if one.open_for == _INF else f"is open for {duration(one.open_for)} from its start on"


def _in(one: Prospect, now: float) -> str:
    if one.start == _INF:
        return "never"
    return "now" if one.start <= now + 1 else f"in {duration(one.start - now)}"


def _has(one: Prospect) -> str:
    if one.copying == _INF:
        return "cannot get its data"
    return "has its data" if one.copying == 0 else f"has it after copying for {duration(one.copying)}"


@dataclass(slots=True)
class Judgement:
    """What was found when a job was looked at, for a person that asks later."""

    time: float
    here: Prospect
    chosen: Prospect | None = None
    #: Why that was chosen, if not by comparison.
    why: str = ""
    #: The places that it could go to.
    seen: list[Prospect] = field(default_factory=list)
    #: Sites to which it cannot go -> why.
    barred: dict[str, str] = field(default_factory=dict)
    #: Why it stays although a place is better, or no place was looked at.
    stays: str = ""

    def reason(self, options: FollowOptions) -> str:
        """Why it goes to the place that was chosen."""
        assert self.chosen is not None
        if self.why:
            return self.why
        by, _ = deciding(self.here, self.chosen, options)
        return "" if by is None else in_words(by, self.here, self.chosen, self.time)

    def sentence(self, options: FollowOptions) -> str:
        """Why it goes or stays, without a full stop."""
        if self.chosen is not None and not self.stays:
            return f"It goes to {self.chosen.site}: {self.reason(options)}"
        stays = f"It stays at {self.here.site}"
        if self.stays:
            return f"{stays}: {self.stays}"
        parts = []
        for one in self.seen:
            by, _ = deciding(self.here, one, options)
            shown = by or options.by[0]
            less = "" if by else ", which is too little a gain"
            parts.append(in_words(shown, self.here, one, self.time) + less)
        parts += [f"{site} cannot take it ({why})" for site, why in self.barred.items()]
        return f"{stays}: {'; '.join(parts)}" if parts else f"{stays}: there is no other site"
