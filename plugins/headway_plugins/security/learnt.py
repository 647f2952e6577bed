"""How fast options really are, from what protected jobs told that they took.

Of each option the median, over the last runs that told something, of the seconds for each byte: so a few jobs
that tell nonsense change little, and what is learnt stays within a factor of :data:`FURTHEST` of the profile.
Options that no job has tried are scaled as the other options of their service. Runs on little data say more
about opening files than about speed and count for nothing.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from dataclasses import replace

from headway_plugins.security.levels import Ladder, Option, Profile, undominated
from headway_plugins.security.protection.label import parse_took

#: Runs that are remembered, and of which nothing is concluded yet.
REMEMBERED, FEWEST = 51, 3
#: Bytes.
LEAST = 10**6
FURTHEST = 20.0


class Speeds:
    """What was told, by option: seconds for each byte, the last run last."""

    def __init__(self, runs: Mapping[str, list[float]] | None = None) -> None:
        self.runs: dict[str, list[float]] = dict(runs or {})
        #: What each job that is not over said last.
        self._said: dict[str, str] = {}

    def learn(self, job_id: str, took: str) -> bool:
        """Take what a job told; what it told before counts once. Whether it was news."""
        if self._said.get(job_id) == took:
            return False
        self._said[job_id] = took
        news = False
        for option, (count, seconds) in parse_took(took).items():
            if count >= LEAST and seconds > 0:
                runs = self.runs.setdefault(option, [])
                runs.append(seconds / count)
                del runs[:-REMEMBERED]
                news = True
        return news

    def forget(self, job_id: str) -> None:
        self._said.pop(job_id, None)

    def applied(self, profile: Profile) -> Profile:
        """The profile with the speeds that were learnt; options that are no longer worth having are left
        out."""
        if not any(len(runs) >= FEWEST for runs in self.runs.values()):
            return profile
        one, two, three = (self._ladder(ladder) for ladder in profile.ladders)
        return replace(profile, ladders=(one, two, three))

    def _ladder(self, ladder: Ladder) -> Ladder:
        known = {option.name: self._factor(option) for option in ladder}
        factors = [factor for factor in known.values() if factor is not None]
        if not factors:
            return ladder
        # No job has tried the other options: they have the same files to read and write.
        others = statistics.median(factors)
        return undominated(
            option
            if option.speed is None
            else replace(option, speed=option.speed * (known[option.name] or others))
            for option in ladder
        )

    def _factor(self, option: Option) -> float | None:
        """How many times as fast as the profile says; None: not known."""
        runs = self.runs.get(option.name, [])
        if option.speed is None or len(runs) < FEWEST:
            return None
        return min(max(1 / statistics.median(runs) / option.speed, 1 / FURTHEST), FURTHEST)
