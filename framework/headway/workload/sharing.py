"""What it costs two processes to share a processor, one in front and one in the background.

X. Liu, B. Chen, X. Qiu, Y. Cai, K. Huang: Scheduling Parallel Jobs Using Migration and Consolidation in the
Cloud. 2012, sections 2.1, 3.1 and 3.2. The paper measured it on virtual machines; ``headway reproduce measy``
measures it on the processes of the machine that it runs on.

A plugin that wants the emulated cluster to reckon so returns a :class:`Sharing` from ``register_physics``.
From then on estimates bound work: a job ends once it has done its estimate's worth, however slowly.

Equation (3.1) of the paper multiplies by the loss where its text says that the loss is what is lost: the
foreground runs at 1 - loss. Loss and efficiency are drawn for each process and each time that it gets
another neighbour, not for each slice of time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

import msgspec

from headway.workload.jobs import TraceJob

#: Section 2.1: what the foreground loses, and what the background gets of the idle cycles: uniform for jobs
#: of one process, normal for others, cut at the extremes that were seen.
LOSS = (0.005, 0.04)
EFFICIENCY_OF_ONE = (0.80, 0.92)
EFFICIENCY = (0.428, 0.144)
EFFICIENCY_LIMITS = (0.198, 0.766)

#: Section 3.1: the mean CPU use of the processes of a job that has several.
CPU_USE = (0.40, 1.00)
#: The same where nothing is drawn.
FIXED_CPU_USE = 0.7

#: A job's attribute: the share of a processor that each of its processes uses, in (0, 1].
CPU = "cpu"


class Sharing(msgspec.Struct, frozen=True):
    """How fast processes go that share a processor, and what a move costs."""

    #: Share of its speed that a foreground process loses to a neighbour in the background; None: drawn.
    loss: float | None = None
    #: What a background process makes of idle cycles; None: drawn.
    efficiency: float | None = None
    #: Seconds for which a job stands still that is moved with its progress.
    migration_cost: float = 20.0

    @property
    def fixed(self) -> bool:
        """Nothing is drawn."""
        return self.loss is not None and self.efficiency is not None

    def drawing(self, rng: Random) -> Callable[[int], tuple[float, float]]:
        """What draws the loss of a process in front and the efficiency of one behind, given how many
        processes the job behind has; the same as :meth:`draw_loss` and then :meth:`draw_efficiency`."""
        loss, efficiency, gauss, random = self.loss, self.efficiency, rng.gauss, rng.random
        # uniform(a, b) is a + (b - a) * random(), which is reckoned here without the call.
        lowest, highest = LOSS
        losses = highest - lowest
        low, high = EFFICIENCY_OF_ONE
        efficiencies = high - low
        mean, spread = EFFICIENCY
        least, most = EFFICIENCY_LIMITS

        def draw(processes: int) -> tuple[float, float]:
            lost = loss if loss is not None else lowest + losses * random()
            if efficiency is not None:
                return lost, efficiency
            if processes == 1:
                return lost, low + efficiencies * random()
            drawn = gauss(mean, spread)
            return lost, least if drawn < least else most if drawn > most else drawn

        return draw

    def draw_loss(self, rng: Random) -> float:
        return self.loss if self.loss is not None else rng.uniform(*LOSS)

    def draw_efficiency(self, rng: Random, processes: int) -> float:
        if self.efficiency is not None:
            return self.efficiency
        if processes == 1:
            return rng.uniform(*EFFICIENCY_OF_ONE)
        least, most = EFFICIENCY_LIMITS
        return min(max(rng.gauss(*EFFICIENCY), least), most)


def with_cpu_use(jobs: Sequence[TraceJob], sharing: Sharing, seed: int) -> list[TraceJob]:
    """The jobs with the attribute ``cpu`` where they have none: 1 for a single process, else drawn for each
    job by its id and ``seed``, whatever other jobs there are."""
    found, rng = [], Random()
    for trace in jobs:
        job = trace.job
        if job.attributes is None or CPU not in job.attributes:
            if job.request.processors == 1:
                use = 1.0
            elif sharing.fixed:
                use = FIXED_CPU_USE
            else:
                rng.seed(f"{seed} cpu use of job {job.id}")
                use = rng.uniform(*CPU_USE)
            job = msgspec.structs.replace(job, attributes={**(job.attributes or {}), CPU: use})
            trace = msgspec.structs.replace(trace, job=job)
        found.append(trace)
    return found
