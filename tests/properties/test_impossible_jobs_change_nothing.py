"""A job that its pool cannot hold changes nothing for the others, whatever the policy."""

from __future__ import annotations

from building import traced
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.emulation import emulate
from headway.errors import UserError
from headway.model import ClusterDescription, NodeDescription, PoolDescription, Reservation
from headway.plugins import Catalogue, PluginConfig, traits_of
from headway.workload.jobs import TraceJob, dedicated

CATALOGUE = Catalogue()
GIGABYTE = 1 << 30


def needs_energy(config: PluginConfig) -> bool:
    return "energy" in traits_of(CATALOGUE.get(config.name)).requires


#: Every policy and every preset that runs on a cluster without an energy profile.
POLICIES = sorted(
    name
    for name in (*CATALOGUE.names(), *CATALOGUE.presets())
    if name in CATALOGUE.presets() or hasattr(CATALOGUE.get(name), "schedule")
    if not any(needs_energy(config) for config in CATALOGUE.enabled([PluginConfig(name)]))
)

FLAT = ClusterDescription(
    "cluster",
    (PoolDescription("pool", 8),),
    (),
    (Reservation("small", 5, 40, pool="pool", processors=2),),
)
#: One node is down: what needs it is left out as well.
NODES = ClusterDescription(
    "cluster",
    (PoolDescription("pool"),),
    (
        NodeDescription("a1", 4, memory=8 * GIGABYTE, pools=("pool",), features=("fast",)),
        NodeDescription("a2", 4, memory=8 * GIGABYTE, pools=("pool",)),
        NodeDescription("b1", 8, memory=4 * GIGABYTE, pools=("pool",), gres=(("gpu", 2),)),
        NodeDescription("d1", 8, memory=64 * GIGABYTE, pools=("pool",), available=False),
    ),
    (Reservation("small", 5, 40, nodes=("a2",)),),
)
TOO_MUCH_FLAT = ({"processors": 9}, {"processors": 100_000}, {"processors": 3, "reservation": "small"})
TOO_MUCH_ON_NODES = (
    {"processors": 25},
    {"processors": 20},
    {"processors": 4, "nodes": 4},
    {"processors": 10, "processors_per_chunk": 10},
    {"processors": 1, "memory_per_node": 65 * GIGABYTE},
    {"processors": 2, "memory_per_processor": 30 * GIGABYTE},
    {"processors": 1, "gres_per_node": (("gpu", 3),)},
    {"processors": 1, "gres_per_node": (("tape", 1),)},
    {"processors": 5, "features": ("fast",)},
    {"processors": 1, "features": ("slow",)},
    {"processors": 1, "required_nodes": ("d1",)},
    {"processors": 1, "required_nodes": ("a1", "z9")},
    {"processors": 9, "nodes": 2, "exclusive": True, "excluded_nodes": ("b1",)},
    {"processors": 5, "reservation": "small"},
)


@st.composite
def workloads(draw, too_much):
    """Jobs that can run, jobs that cannot, and both in order of submission."""
    jobs, submit = [], 0
    impossible = set()
    for at in range(draw(st.integers(2, 12))):
        submit += draw(st.sampled_from([0, 0, 1, 3, 8]))
        estimate = draw(st.integers(1, 20))
        if draw(st.integers(0, 2)) == 0:
            asked = dict(draw(st.sampled_from(too_much)))
            impossible.add(f"j{at}")
        else:
            asked = {"processors": draw(st.integers(1, 8))}
        job = traced(
            f"j{at}", asked.pop("processors"), estimate, submit, runtime=draw(st.integers(0, 20)), **asked
        )
        if draw(st.integers(0, 4)) == 0 and not job.job.reservation:
            job = TraceJob(dedicated(job.job, submit + draw(st.integers(1, 25))), job.runtime, job.outcome)
        jobs.append(job)
    return jobs, impossible


def starts(policy: str, cluster: ClusterDescription, jobs: list[TraceJob]) -> dict[str, float | None]:
    result = emulate(cluster, jobs, [PluginConfig(policy)], CATALOGUE, label=policy)
    return {job.job.id: job.start_time for job in result.jobs}


def changes_nothing(policy, cluster, jobs, impossible):
    possible = [job for job in jobs if job.job.id not in impossible]
    found = starts(policy, cluster, jobs)
    assert all(found.pop(name) is None for name in impossible)
    assert found == starts(policy, cluster, possible)


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(POLICIES), workloads(TOO_MUCH_FLAT))
def test_on_a_flat_pool_the_others_start_as_without_it(policy, workload):
    changes_nothing(policy, FLAT, *workload)


def _takes_nodes(policy: str) -> bool:
    try:
        emulate(NODES, [], [PluginConfig(policy)], CATALOGUE, label=policy)
    except UserError as error:
        assert "nodes" in str(error)
        return False
    return True


@settings(max_examples=200, deadline=None)
@given(st.sampled_from([policy for policy in POLICIES if _takes_nodes(policy)]), workloads(TOO_MUCH_ON_NODES))
def test_on_nodes_the_others_start_as_without_it(policy, workload):
    changes_nothing(policy, NODES, *workload)
