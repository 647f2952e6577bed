"""The workload model of Jann and others 1997, as far as it is public, fitted to published shares and means.

J. Jann, P. Pattnaik, H. Franke, F. Wang, J. Skovira, J. Riordan: Modeling of Workload in MPPs. JSSPP 1997.
What is known of it: jobs are divided into classes by size, and in each of them runtimes and times between
arrivals are hyper-Erlang of common order, fitted to the first three moments of the log of the Cornell
Theory Center's SP2.

*Fitted*, because the parameters were not to be had: the classes' shares and the mean size of 10.5
(:mod:`.size_classes`), and the mean runtime to the 11,267 s of Liu and others 2012, section 3.1.

*Ours*: order 2; four of five runtimes are of a branch with a mean of a fifth of the mean of all
(coefficient of variation 2.1), 70 % of the times between arrivals of a branch with 0.3 of theirs (1.5);
both are the same in all classes but for the rate of arrivals. The classes arrive independently, stretched
to the load together. Estimates come from the f-model (:mod:`..estimates.f_model`); any other
model's can be put in their place. Seconds are whole.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from headway.hookspecs import Plugin, hookimpl
from headway.workload import Workload, WorkloadModel
from headway_plugins.workloads.jobs import FittedOptions, fitted_workload
from headway_plugins.workloads.size_classes import SizeClasses, class_of

Floats = NDArray[np.float64]

SIZES = SizeClasses((40.8, 7.4, 12.2, 10.9, 13.6, 7.9, 5.2, 1.4, 0.7), 10.5)
MEAN_RUNTIME = 11_267.0
ERLANG_ORDER = 2
#: Probability of the short branch, and its mean as a share of the whole mean.
RUNTIME = (0.8, 0.2)
GAP = (0.7, 0.3)


class Jann97Options(FittedOptions):
    """The options of :class:`Jann97Model`."""


def hyper_erlang(rng: np.random.Generator, count: int, shape: tuple[float, float]) -> Floats:
    """So many values of mean 1: two Erlang branches of common order."""
    chance, short = shape
    long = (1.0 - chance * short) / (1.0 - chance)
    mean = np.where(rng.random(count) < chance, short, long)
    found: Floats = rng.gamma(ERLANG_ORDER, mean / ERLANG_ORDER)
    return found


class Jann97Model:
    """The model as :class:`headway.workload.WorkloadModel`."""

    Options = Jann97Options

    def generate(self, rng: np.random.Generator, options: Jann97Options) -> Workload:
        """Jobs with ids "1", "2", ...; times in seconds."""
        count, processors = options.jobs, options.processors
        size = SIZES.draw(rng, count, processors)
        runtime = np.maximum(np.rint(hyper_erlang(rng, count, RUNTIME) * MEAN_RUNTIME), 1.0)
        submit = np.zeros(count)
        kind = class_of(size)
        for each in range(len(SIZES.shares)):
            mine = np.flatnonzero(kind == each)
            if len(mine):
                # Each class has its own arrivals, which fill the same span.
                times = np.cumsum(hyper_erlang(rng, len(mine), GAP))
                submit[mine] = times / times[-1] * rng.uniform(1.0 - 1.0 / len(mine), 1.0)
        order = np.argsort(submit, kind="stable")
        submit, size, runtime = submit[order], size[order], runtime[order]
        work = float(size @ runtime)
        submit *= work / (processors * options.load)
        return fitted_workload(rng, options, submit, size, runtime)


class Jann97(Plugin):
    """The workload model "jann97": classes by size with hyper-Erlang times after Jann and others, 1997."""

    @hookimpl
    def register_workloads(self) -> dict[str, WorkloadModel]:
        return {"jann97": Jann97Model()}
