"""Small workloads on which fairness is known, and how they are run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from building import traced
from hypothesis import strategies as st

from headway.emulation import emulate
from headway.model import ClusterDescription
from headway.plugins import Catalogue, PluginConfig
from headway.results import RunResult

CATALOGUE = Catalogue()
KEEP = ("conservative", {"guarantees": "keep"})
POLICIES: dict[str, str | tuple[str, dict[str, Any]]] = {
    "none": "greedy", "easy": "easy", "cons": "conservative", "keep": KEEP, "strict": "fcfs",
}  # fmt: skip
ORDERS = {"fcfs": [], "sjf": ["shortest-first"], "lxf": ["largest-xfactor"]}
ALL = [(policy, order) for policy in POLICIES for order in ORDERS]
#: Without the one that lets nobody overtake in its order.
NINE = [(policy, order) for policy in ("none", "easy", "cons") for order in ORDERS]

Jobs = Sequence[tuple[float, int, float, float]]


def run(processors: int, jobs: Jobs, policy: str, order: str = "fcfs", **more: Any) -> RunResult:
    """Jobs as (arrival, processors, runtime, estimate)."""
    work = [
        traced(str(at), size, estimate, arrival, runtime=runtime)
        for at, (arrival, size, runtime, estimate) in enumerate(jobs)
    ]
    chosen = POLICIES[policy]
    name, options = (chosen, {}) if isinstance(chosen, str) else chosen
    configs = [PluginConfig(name, options), *(PluginConfig(one) for one in ORDERS[order])]
    cluster = ClusterDescription.flat(processors, name="pool")
    return emulate(cluster, work, configs, CATALOGUE, label=policy, **more)


BENIGN = [(0, 6, 100, 100), (10, 8, 50, 50), (20, 3, 50, 50)]
DELAYED = [(0, 4, 20, 100), (0, 4, 20, 100), (1, 10, 50, 50), (2, 2, 90, 90)]
HELPED = [(0, 2, 6, 12), (1, 4, 4, 4), (2, 3, 3, 3), (3, 1, 6, 6)]
STARVED = [(0, 5, 10, 10), (1, 10, 5, 5), (2, 5, 10, 10), (8, 5, 10, 10), (14, 5, 10, 10)]
NINE_JOBS = [
    (2, 8, 12, 14), (3, 6, 4, 6), (4, 4, 4, 4), (8, 4, 11, 11), (9, 8, 6, 8), (9, 4, 4, 12), (13, 8, 9, 9),
    (14, 2, 12, 14), (18, 1, 8, 10),
]  # fmt: skip


jobs_of = st.lists(
    st.tuples(st.integers(0, 12), st.integers(1, 6), st.integers(0, 9), st.integers(0, 9)),
    min_size=1,
    max_size=9,
).map(lambda drawn: sorted((a, n, min(r, r + e), r + e) for a, n, r, e in drawn))
