"""All nodes on one of several machines, as early as possible.

K. Yoshimoto, P. Kovatch, P. Andrews: Co-scheduling with User-Settable Reservations. Job Scheduling Strategies
for Parallel Processing, 2005, section 2: whichever line moves first.

Ours: each machine that takes the nodes is asked in the order of the preference list. The earliest start is
kept and the other reservation is cancelled at once; of two equal starts the first is kept.
"""

from __future__ import annotations

from headway_plugins.coscheduling.calls import Denied, Granted
from headway_plugins.coscheduling.multiple import Refused
from headway_plugins.coscheduling.rounds import Part, Rounds, Steps


def search(rounds: Rounds, slide: dict[str, float]) -> Steps[float]:
    """The start that was found; raises :class:`.multiple.Refused`."""
    metajob = rounds.metajob
    rounds.round += 1
    for name in metajob.preferred:
        if not metajob.machines[name].min <= metajob.total <= metajob.machines[name].max:
            continue
        answer = yield from _at(rounds, Part(name, metajob.total, metajob.duration), slide)
        if isinstance(answer, Granted) and len(rounds.made) > 1:
            kept, new = rounds.made
            yield from rounds.cancel(kept if new.start < kept.start else new)
    if not rounds.made:
        raise Refused("no machine")
    return rounds.made[0].start


def _at(rounds: Rounds, part: Part, slide: dict[str, float]) -> Steps[Granted | Denied]:
    """The first answer of the machine; at a site with fixed starts, of one start time after another."""
    metajob = rounds.metajob
    at = metajob.earliest
    while True:
        answer = yield from rounds.set(part, at)
        if isinstance(answer, Granted) or answer.reason != "place" or part.site not in slide:
            return answer
        at += slide[part.site]
        if at + part.duration > metajob.latest:
            return answer
