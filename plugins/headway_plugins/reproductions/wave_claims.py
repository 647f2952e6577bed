"""What the paper on the Wave Scheduler says in words, judged.

D. Zhou, V. Lo: Wave Scheduler. JSSPP 2005, section 5.3. Where a claim compares with policies without
wavezones, it is judged by both clocks (:data:`headway_plugins.reproductions.wave_tables.CLOCKS`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from headway.experiment.campaign import Row, select
from headway.experiment.judging import Of, held, joined, provided, verdict
from headway.experiment.reproduction import Claim
from headway.experiment.statistics import Interval, interval
from headway_plugins.reproductions.wave_runs import (
    ABOVE,
    FAILURE,
    LARGEST,
    MIGRATIONS,
    PLAIN,
    RANDOM,
    RING,
    SLOWDOWN,
    WAVES,
    label,
    scenario,
    variants,
)
from headway_plugins.reproductions.wave_tables import cell, mean
from headway_plugins.wave.options import Clock
from headway_plugins.wave.profiles import added_slowdown
from headway_plugins.wave.zones import Target

#: Where "much" free time begins, percent: the paper's own bound of Figure 5; where it is "limited".
MUCH, LITTLE = 65, 15
#: What is meant by no difference and by close in slowdown, and by alike in failures (points): ours.
ALIKE, CLOSE, POINTS = 0.03, 0.1, 3.0
#: Hours of a job: the shortest and the mean.
SHORTEST, MEAN = 12.0, 18.0

NONE, IMMEDIATE, LINGER, ADAPTIVE = PLAIN
WAVE_IMMEDIATE, WAVE_LINGER, WAVE_ADAPTIVE = WAVES
#: Each wave policy with its counterpart.
PAIRS = tuple(zip(WAVES, PLAIN[1:], strict=True))


@dataclass(frozen=True)
class Curves:
    """What is measured over x by one clock; x: percentages."""

    rows: Sequence[Row]
    fixed: str
    clock: Clock
    xs: tuple[float, ...]

    @property
    def scenario(self) -> str:
        return scenario(self.fixed, self.clock)

    @property
    def said(self) -> str:
        """The clock, for people."""
        return "one clock" if self.clock is Clock.SHARED else "zones"

    def zones(self) -> Curves:
        """The same by the clocks of the zones, by which the wave policies are run."""
        return Curves(self.rows, self.fixed, Clock.ZONES, self.xs)

    def only(self, least: float = 0, below: float = 101) -> Curves:
        """The part from ``least`` on and below ``below``."""
        return Curves(self.rows, self.fixed, self.clock, tuple(x for x in self.xs if least <= x < below))

    def values(self, metric: str, name: str, x: float) -> list[float]:
        """By seed; NaN where too few jobs are done."""
        return select(self.rows, metric, scenario=self.scenario, variant=name, x=x)

    def means(self, metric: str, name: str) -> dict[float, float]:
        """By x; NaN where too few jobs are done."""
        return {x: mean(self.rows, metric, self.scenario, name, x) for x in self.xs}

    def shown(self, metric: str, name: str, form: str = ".2f") -> str:
        """The means in order of x."""
        means = self.means(metric, name).values()
        return ", ".join("-" if value != value else f"{value:{form}}" for value in means)

    def below(self, metric: str, ours: str, theirs: str, other: Curves | None = None) -> list[Interval]:
        """By how much ours is below theirs, seed by seed, at each x where both have means; theirs may be of
        other curves."""
        other = other or self
        pairs = [(self.values(metric, ours, x), other.values(metric, theirs, x)) for x in self.xs]
        found = [less(*pair) for pair in pairs]
        return [one for one in found if one.count]

    def apart(self, metric: str, ours: str, theirs: str) -> list[float]:
        """How far the means are apart at each x where both have means."""
        return [abs(one.mean) for one in self.below(metric, ours, theirs)]


def less(ours: Sequence[float], theirs: Sequence[float]) -> Interval:
    """Theirs less ours, seed by seed; seeds without a mean are left out."""
    return interval([b - a for a, b in zip(ours, theirs, strict=True) if a == a and b == b])


def beyond(gain: Interval, least: float) -> Interval:
    """By how much a gain is above what counts as alike."""
    return Interval(gain.mean - least, gain.half, gain.count)


def ring(name: str) -> str:
    """The variant of a policy that asks hosts ring by ring."""
    return label(name, RING)


def at_random(name: str) -> str:
    """The variant of a policy that asks the owners of random points."""
    return label(name, RANDOM)


# ---------------------------------------------------------------------- migration, one clock


def turnaround(free: Curves) -> list[Claim]:
    """E1 to E4, Figure 5."""
    low, high = free.only(below=MUCH), free.only(MUCH)
    faster = [
        one for name in PLAIN[1:] for search in (RING, RANDOM)
        for one in free.below(SLOWDOWN, label(name, search), label(NONE, search))
    ]  # fmt: skip
    ones = [
        value for name in (ring(IMMEDIATE), at_random(IMMEDIATE))
        for value in free.means(SLOWDOWN, name).values() if value == value
    ]  # fmt: skip
    between = [
        one for search in (RING, RANDOM) for ours, theirs in ((LINGER, NONE), (ADAPTIVE, LINGER))
        for one in free.below(SLOWDOWN, label(ours, search), label(theirs, search))
    ]  # fmt: skip
    adaptive = free.means(SLOWDOWN, ring(ADAPTIVE))
    crossed = [
        *low.below(SLOWDOWN, at_random(LINGER), ring(LINGER)),
        *low.below(SLOWDOWN, ring(ADAPTIVE), at_random(ADAPTIVE)),
    ]
    equal = [gap for name in (LINGER, ADAPTIVE) for gap in high.apart(SLOWDOWN, ring(name), at_random(name))]
    same = {name: free.apart(SLOWDOWN, ring(name), at_random(name)) for name in (NONE, IMMEDIATE)}
    return [
        Claim("E1, Figure 5", "every way to migrate has a lower slowdown than none; immediate's is 1",
              f"lower at {wins(faster)}; immediate at most {max(ones, default=float('nan')):.4f}; none "
              f"{free.shown(SLOWDOWN, ring(NONE))}",
              joined(verdict(faster), held([abs(value - 1) < 1e-6 for value in ones]))),
        Claim("E2, Figure 5", "linger is between none and adaptive; adaptive is close to immediate",
              f"ring: linger {free.shown(SLOWDOWN, ring(LINGER))}; adaptive "
              f"{free.shown(SLOWDOWN, ring(ADAPTIVE))}",
              joined(verdict(between), held([value - 1 <= CLOSE for value in adaptive.values()]))),
        Claim("E3, Figure 5",
              f"f below {MUCH} %: linger is faster with random, adaptive with ring; above no difference",
              f"random: linger {free.shown(SLOWDOWN, at_random(LINGER))}; adaptive "
              f"{free.shown(SLOWDOWN, at_random(ADAPTIVE))}; as said at {wins(crossed)}; from {MUCH} % on at "
              f"most {max(equal, default=0):.3f} apart",
              joined(verdict(crossed), held([gap <= ALIKE for gap in equal]))),
        Claim("E4, Figure 5", "none and immediate do not depend on how hosts are found",
              "; ".join(f"{name}: ring and random at most {max(gaps, default=0):.3f} apart"
                        for name, gaps in same.items()),
              held([gap <= ALIKE for gaps in same.values() for gap in gaps])),
    ]  # fmt: skip


def wins(points: Sequence[Interval]) -> str:
    """At how many points the means are better."""
    return f"{sum(one.mean > 0 for one in points)} of {len(points)} points"


def histogram(free: Curves, shares: Curves) -> list[Claim]:
    """E5, Figure 6."""
    above = free.means(ABOVE, ring(NONE))[LITTLE]
    largest = max(free.values(LARGEST, ring(NONE), LITTLE))
    small = {
        name: sum(shares.means(bin_, ring(name))[LITTLE] for bin_ in ("1 to 1.25", "1.25 to 1.5"))
        for name in (IMMEDIATE, ADAPTIVE)
    }
    return [
        Claim("E5, Figure 6",
              "most jobs without migration are slowed down by more than 2, some by more than 5; most of "
              "immediate and adaptive little",
              f"{above:.1f} % above 2, largest {largest:.2f}; below 1.5: "
              + ", ".join(f"{name} {share:.1f} %" for name, share in small.items()),
              held([above > 50, largest > 5, *(share > 50 for share in small.values())])),
    ]  # fmt: skip


def failures(free: Curves, clients: Curves) -> list[Claim]:
    """E6 to E8, Figures 7 and 8."""
    high, little = free.only(MUCH), free.only(below=LITTLE + 1)
    searches = (RING, RANDOM)
    eager = [
        value for name in (IMMEDIATE, LINGER) for search in searches
        for value in little.means(FAILURE, label(name, search)).values()
    ]  # fmt: skip
    patient = max(max(free.means(FAILURE, label(ADAPTIVE, search)).values()) for search in searches)
    first, last = clients.xs[0], clients.xs[-1]
    rise = [
        less(clients.values(FAILURE, label(*one), first), clients.values(FAILURE, label(*one), last))
        for one in variants(Clock.SHARED)
    ]
    steady = min(min(clients.means(FAILURE, label(IMMEDIATE, search)).values()) for search in searches)
    crowded = [clients.means(FAILURE, ring(name))[last] for name in (ADAPTIVE, NONE)]
    return [
        Claim("E6, Figure 7",
              "little free time: immediate and linger fail extremely often, adaptive nearly never",
              f"f up to {LITTLE} %: {min(eager):.1f} to {max(eager):.1f} %; adaptive at most {patient:.2f} % "
              f"at any f", held([min(eager) > 50, patient < 1])),
        Claim("E7, Figure 8", "failures of all rise with the clients; immediate's are high throughout",
              "ring: " + "; ".join(f"{name} {clients.shown(FAILURE, ring(name), '.1f')} %" for name in PLAIN),
              joined(verdict(rise), held([steady > 50]))),
        Claim("E8, Figure 7", "much free time: adaptive with ring fails slightly less than none",
              f"adaptive {high.shown(FAILURE, ring(ADAPTIVE))} %, none {high.shown(FAILURE, ring(NONE))} %; "
              f"f = {LITTLE} %, c = {last:g} %: {crowded[0]:.1f} and {crowded[1]:.1f} %",
              verdict(high.below(FAILURE, ring(ADAPTIVE), ring(NONE)))),
    ]  # fmt: skip


def moves(free: Curves) -> list[Claim]:
    """E9 and E10, Figure 9."""
    found, verdicts = [], []
    for name in (label(one, search) for one in PLAIN[1:] for search in (RING, RANDOM)):
        means = {x: value for x, value in free.means(MIGRATIONS, name).items() if value == value}
        if not means:
            continue
        peak = max(means, key=means.__getitem__)
        ends = {min(means), max(means)} - {peak}
        top = free.values(MIGRATIONS, name, peak)
        rise = [less(free.values(MIGRATIONS, name, x), top) for x in ends]
        verdicts.append(verdict(rise) if len(ends) == 2 else "no")
        found.append(f"{name}: most, {means[peak]:.1f}, at {peak:g} %")
    most = max(
        value for name in PLAIN[1:] for value in free.means(MIGRATIONS, ring(name)).values() if value == value
    )
    added = {size: added_slowdown(most, size, MEAN) for size in (1e6, 20e6)}
    longer = {size: added_slowdown(most, size, SHORTEST) for size in (1e6, 20e6)}
    return [
        Claim("E9, Figure 9", "migrations rise first and then fall as free time grows", "; ".join(found),
              joined(*verdicts)),
        Claim("E10", "a move of 1 MB adds at most 0.005 to the slowdown, of 20 MB at most 0.1",
              f"{most:.1f} moves at most: {added[1e6]:.4f} and {added[20e6]:.3f} for jobs of {MEAN:g} h, "
              f"{longer[1e6]:.4f} and {longer[20e6]:.3f} for jobs of {SHORTEST:g} h",
              held([added[1e6] <= 0.005, added[20e6] <= 0.1])),
    ]  # fmt: skip


# ---------------------------------------------------------------------- wave beside migration, both clocks


def wave_turnaround(clocks: Sequence[Curves]) -> list[Claim]:
    """E11 and E12, Figure 10."""
    claims = []
    for free in clocks:
        waves = free.zones()
        faster = waves.below(SLOWDOWN, ring(WAVE_LINGER), ring(LINGER), free)
        adaptive = waves.shown(SLOWDOWN, ring(WAVE_ADAPTIVE)), free.shown(SLOWDOWN, ring(ADAPTIVE))
        low = [value - 1 <= CLOSE for value in waves.means(SLOWDOWN, ring(WAVE_ADAPTIVE)).values()]
        little = waves.only(below=LITTLE + 1).below(SLOWDOWN, ring(WAVE_ADAPTIVE), ring(ADAPTIVE), free)
        claims += [
            Claim(f"E11, Figure 10, {free.said}", "wave-linger is faster than migration-linger",
                  f"faster at {wins(faster)}: {waves.shown(SLOWDOWN, ring(WAVE_LINGER))}; migration-linger "
                  f"{free.shown(SLOWDOWN, ring(LINGER))}", verdict(faster, Of.MOST)),
            Claim(f"E11, Figure 10, {free.said}",
                  "wave-adaptive is always low, migration-adaptive significantly higher (here: by more than "
                  f"{ALIKE:g}) if free time is small", f"{adaptive[0]}; migration-adaptive {adaptive[1]}",
                  provided(verdict([beyond(one, ALIKE) for one in little]), held(low))),
        ]  # fmt: skip
    for free in clocks:
        ours = free.zones().values(SLOWDOWN, ring(WAVE_ADAPTIVE), LITTLE)
        theirs = free.values(SLOWDOWN, ring(ADAPTIVE), LITTLE)
        share = interval([100 * a / b for a, b in zip(ours, theirs, strict=True)])
        gain = beyond(Interval(100 - share.mean, share.half, share.count), 100 * ALIKE)
        claims.append(
            Claim(f"E12, {free.said}",
                  f"f = {LITTLE} %: wave-adaptive takes about 75 % of migration-adaptive's turnaround",
                  f"{share} %", provided(verdict([gain]), held([abs(share.mean - 75) <= 5])))
        )  # fmt: skip
    return claims


def wave_failures(frees: Sequence[Curves], crowds: Sequence[Curves]) -> list[Claim]:
    """E13 to E15, Figures 11 and 12."""
    claims = []
    for clients in crowds:
        waves = clients.zones()
        fewer = [one for ours, theirs in PAIRS[:2]
                 for one in waves.below(FAILURE, ring(ours), ring(theirs), clients)]  # fmt: skip
        text = "; ".join(
            f"{ours} {waves.shown(FAILURE, ring(ours), '.1f')}, {theirs} "
            f"{clients.shown(FAILURE, ring(theirs), '.1f')} %" for ours, theirs in PAIRS[:2]
        )  # fmt: skip
        claims.append(
            Claim(f"E13, Figure 12, {clients.said}", "limited free time: wave fails less than migration",
                  text, verdict(fewer))
        )  # fmt: skip
    for free in frees:
        high = free.only(MUCH)
        waves = high.zones()
        more = [
            *(one for name in PLAIN for one in high.below(FAILURE, ring(name), ring(WAVE_IMMEDIATE), waves)),
            *(one for name in WAVES[1:] for one in waves.below(FAILURE, ring(name), ring(WAVE_IMMEDIATE))),
        ]
        alike = [
            abs(waves.means(FAILURE, ring(name))[x] - high.means(FAILURE, ring(other))[x]) <= POINTS
            for name in WAVES[1:] for other in (ADAPTIVE, NONE) for x in high.xs
        ]  # fmt: skip
        claims.append(
            Claim(f"E14, Figure 11, {free.said}",
                  "much free time: wave-immediate fails more than all others; linger and adaptive as "
                  "migration-adaptive and none",
                  "; ".join(f"{name} {waves.shown(FAILURE, ring(name), '.1f')}" for name in WAVES) + " %",
                  joined(verdict(more), held(alike)))
        )  # fmt: skip
    for clients in crowds:
        waves = clients.zones()
        ours, none = waves.means(FAILURE, ring(WAVE_ADAPTIVE)), clients.means(FAILURE, ring(NONE))
        fewer = waves.below(FAILURE, ring(WAVE_ADAPTIVE), ring(ADAPTIVE), clients)
        claims.append(
            Claim(f"E15, Figure 12, {clients.said}",
                  "wave-adaptive fails as often as none, slightly less than migration-adaptive",
                  f"{waves.shown(FAILURE, ring(WAVE_ADAPTIVE), '.1f')}, migration-adaptive "
                  f"{clients.shown(FAILURE, ring(ADAPTIVE), '.1f')}, none "
                  f"{clients.shown(FAILURE, ring(NONE), '.1f')} %",
                  joined(verdict(fewer), held([abs(ours[x] - none[x]) <= POINTS for x in clients.xs])))
        )  # fmt: skip
    return claims


def wave_moves(clocks: Sequence[Curves]) -> list[Claim]:
    """E16, Figure 13."""
    claims = []
    for free in clocks:
        waves = free.zones()
        fewer = [one for ours, theirs in PAIRS
                 for one in waves.below(MIGRATIONS, ring(ours), ring(theirs), free)]  # fmt: skip
        at = [curves.means(MIGRATIONS, ring(name))[LITTLE]
              for curves, name in ((waves, WAVE_ADAPTIVE), (free, ADAPTIVE))]  # fmt: skip
        claims.append(
            Claim(f"E16, Figure 13, {free.said}", "wave needs fewer migrations",
                  f"fewer at {wins(fewer)}; f = {LITTLE} %: wave-adaptive {at[0]:.1f}, migration-adaptive "
                  f"{at[1]:.1f}", verdict(fewer, Of.MOST))
        )  # fmt: skip
    return claims


def rules(rows: Sequence[Row]) -> list[Claim]:
    """E17."""

    def values(metric: str, name: str, rule: Target, x: float) -> list[float]:
        return select(rows, metric, scenario="rules", variant=f"{name}, {rule}", x=x)

    first, *others = Target
    better = [
        less(values(SLOWDOWN, name, first, LITTLE), values(SLOWDOWN, name, rule, LITTLE))
        for name in WAVES[1:] for rule in others
    ]  # fmt: skip
    text = "; ".join(
        f"{what} " + " / ".join(f"{interval(values(metric, name, rule, x)).mean:{form}}" for rule in Target)
        for what, name, metric, x, form in (
            ("wave-linger's slowdown", WAVE_LINGER, SLOWDOWN, LITTLE, ".2f"),
            ("wave-adaptive's migrations", WAVE_ADAPTIVE, MIGRATIONS, LITTLE, ".1f"),
            ("wave-immediate's failures", WAVE_IMMEDIATE, FAILURE, LITTLE, ".1f"),
            ("at f = 85 %", WAVE_IMMEDIATE, FAILURE, 85, ".1f"),
        )
    )
    return [
        Claim("E17, section 5.1",
              "rule (a), just entered, performs better than (b), random, and (c), most nights",
              f"(a) / (b) / (c), f = {LITTLE} %: {text}", verdict(better)),
    ]  # fmt: skip


def both_clocks(frees: Sequence[Curves], crowds: Sequence[Curves]) -> list[Claim]:
    """What the clocks make of the policies without wavezones: no claim of the paper."""
    last = crowds[0].xs[-1]
    claims = []
    for where, (one, zones), x in (
        (f"f = {LITTLE} %, c = 20 %", frees, LITTLE),
        (f"f = {LITTLE} %, c = {last:g} %", crowds, last),
    ):
        text = "; ".join(
            f"{name} {cell(one.rows, one.scenario, ring(name), x)} by one clock, "
            f"{cell(zones.rows, zones.scenario, ring(name), x)} in zones" for name in PLAIN
        )  # fmt: skip
        claims.append(Claim("-", f"(both clocks) failed, %/slowdown/migrations, {where}", text, "-"))
    return claims


def judged(
    by_free: Sequence[Row], by_clients: Sequence[Row], figure_6: Sequence[Row], rule_rows: Sequence[Row],
    xs: Mapping[str, tuple[float, ...]],
) -> list[Claim]:  # fmt: skip
    """All claims; ``xs``: of free time ("f") and clients ("c")."""
    frees = [Curves(by_free, "c", clock, xs["f"]) for clock in (Clock.SHARED, Clock.ZONES)]
    crowds = [Curves(by_clients, "f", clock, xs["c"]) for clock in (Clock.SHARED, Clock.ZONES)]
    free, clients = frees[0], crowds[0]
    shares = Curves(figure_6, "f, c", Clock.SHARED, (LITTLE,))
    return [
        *turnaround(free), *histogram(free, shares), *failures(free, clients), *moves(free),
        *wave_turnaround(frees), *wave_failures(frees, crowds), *wave_moves(frees), *rules(rule_rows),
        *both_clocks(frees, crowds),
    ]  # fmt: skip
