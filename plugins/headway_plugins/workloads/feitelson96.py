"""The workload model of Feitelson 1996, as far as it is public, fitted to published shares and means.

D. Feitelson: Packing Schemes for Gang Scheduling. JSSPP 1996. What is known of it: small sizes and powers
of two are emphasised, on a harmonic law of order 1.5; runtimes are hyperexponential, and the probability
of the short branch falls with the size; a job is run again and again, as many times as a harmonic law of
order 2.5 says.

*Fitted*, because the parameters were not to be had: the sizes to the shares and the mean of 23.4
(:mod:`.size_classes`), and the mean runtime to the 2606.6 s of Liu and others 2012, section 3.1.

*Ours*: the long branch is ten times as long as the short one, whose probability falls from 0.95 for one
processor to 0.75 for the whole machine; at most 1,000 runs of a job, all of the same size and runtime, each
submitted when the job before it would have ended on an empty machine. First runs come at exponential
times, stretched to the load. Estimates come from the f-model (:mod:`..estimates.f_model`); any other
model's can be put in their place. Seconds are whole.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from headway.hookspecs import Plugin, hookimpl
from headway.workload import Workload, WorkloadModel
from headway_plugins.workloads.jobs import FittedOptions, fitted_workload
from headway_plugins.workloads.size_classes import SizeClasses

Floats = NDArray[np.float64]

SIZES = SizeClasses((17.8, 18.1, 14.9, 19.0, 10.6, 6.2, 5.2, 4.2, 4.0), 23.4)
MEAN_RUNTIME = 2606.6
#: Probability of the short branch for one processor, and for the whole machine.
SHORT = (0.95, 0.75)
#: How many times as long the long branch is.
LONG = 10.0
RUNS_ORDER = 2.5
MOST_RUNS = 1000


class Feitelson96Options(FittedOptions):
    """The options of :class:`Feitelson96Model`."""


class Feitelson96Model:
    """The model as :class:`headway.workload.WorkloadModel`."""

    Options = Feitelson96Options

    def generate(self, rng: np.random.Generator, options: Feitelson96Options) -> Workload:
        """Jobs with ids "1", "2", ...; times in seconds."""
        count, processors = options.jobs, options.processors
        first_size = SIZES.draw(rng, count, processors)
        first_runtime = runtimes(rng, first_size, processors)
        order = np.arange(1, MOST_RUNS + 1) ** -RUNS_ORDER
        runs = rng.choice(MOST_RUNS, size=count, p=order / order.sum()) + 1
        # So many first runs as give the wanted number of jobs.
        firsts = int(np.searchsorted(np.cumsum(runs), count)) + 1
        runs = runs[:firsts]
        size, runtime = np.repeat(first_size[:firsts], runs), np.repeat(first_runtime[:firsts], runs)
        began = np.repeat(np.cumsum(runs) - runs, runs)
        number = np.arange(len(size)) - began
        gaps = rng.exponential(1.0, firsts)
        size, runtime, number = size[:count], runtime[:count], number[:count]
        which = np.repeat(np.arange(firsts), runs)[:count]
        mean_gap = float(size @ runtime) / (processors * options.load) / firsts
        submit = np.cumsum(gaps)[which] * mean_gap + number * runtime
        place = np.argsort(submit, kind="stable")
        submit, size, runtime = submit[place], size[place], runtime[place]
        return fitted_workload(rng, options, submit, size, runtime)


def runtimes(rng: np.random.Generator, size: Floats, processors: int) -> Floats:
    """Whole seconds, at least 1, of jobs of these sizes."""

    def short(size: Floats) -> Floats:
        return SHORT[0] + (SHORT[1] - SHORT[0]) * (size - 1) / max(processors - 1, 1)

    all_sizes = np.arange(1, processors + 1, dtype=np.float64)
    chance = float(SIZES.probabilities(processors) @ short(all_sizes))
    mean = MEAN_RUNTIME / (chance + (1.0 - chance) * LONG)
    branch = np.where(rng.random(len(size)) < short(size), mean, mean * LONG)
    return np.maximum(np.rint(rng.exponential(1.0, len(size)) * branch), 1.0)


class Feitelson96(Plugin):
    """The workload model "feitelson96": sizes, runtimes and repeated runs after Feitelson, 1996."""

    @hookimpl
    def register_workloads(self) -> dict[str, WorkloadModel]:
        return {"feitelson96": Feitelson96Model()}
