"""Jobs wait for their data, which are copied meanwhile."""

from __future__ import annotations

import msgspec
import pytest
from building import emulate, federated, told
from sites_of import DataAreThere, decided, job, why

from headway import decisions as d
from headway import events as ev
from headway.errors import UserError
from headway.hookspecs import hookimpl
from headway.model import ClusterDescription, Dataset, Dependency, Link, Site, Store
from headway_adapters.emulated import Faults
from headway_plugins.data.staging import Staging
from headway_plugins.data.supply_options import SupplyOptions
from headway_plugins.policies.easy import Easy
from headway_plugins.policies.fcfs import Fcfs

A, B = Site("a", store=Store()), Site("b", store=Store())
C = Site("c", store=Store())
WIRE = Link("a", "b", bandwidth=10.0, latency=5.0)
D, E, F = Dataset("d", 600, ("a",)), Dataset("e", 500, ("a",)), Dataset("f", 100, ("a",))


def run(cluster, jobs, *plugins, **more):
    return emulate(cluster, jobs, Fcfs(), *(plugins or (Staging(),)), DataAreThere(), **more)


def test_a_job_starts_when_its_data_have_arrived_and_other_jobs_run_meanwhile():
    jobs = [job("b:1", "d"), job("b:2", seconds=30), job("b:3", "d", submit=300), job("a:1", "d")]
    found = run(federated(A, B, links=[WIRE], datasets=[D], size=1), jobs)
    assert found.starts == {"b:1": 65.0, "b:2": 0.0, "b:3": 300.0, "a:1": 0.0}
    assert decided(found, d.Copy) == [(0.0, d.Copy("d", "b", "a", "job b:1 waits for it"))]
    assert found.problems == []


def test_copies_are_made_in_the_order_of_the_queue_a_few_at_a_time():
    narrow = Site("b", store=Store(most_copies=1))
    jobs = [job("b:1", "d"), job("b:2", "f,e"), job("b:3", "e")]
    cluster = federated(A, narrow, links=[WIRE], datasets=[D, E, F])
    found = run(cluster, jobs)
    assert [(at, copy.dataset) for at, copy in decided(found, d.Copy)] == [(0, "d"), (65, "f"), (80, "e")]
    cluster = federated(A, B, links=[WIRE], datasets=[D, E, F])
    found = run(cluster, jobs, Staging(SupplyOptions(parallel=2)))
    assert [(at, copy.dataset) for at, copy in decided(found, d.Copy)] == [(0, "d"), (0, "f"), (15, "e")]


def test_a_copy_comes_from_the_nearest_site():
    links = [WIRE, Link("c", "b", bandwidth=100.0)]
    there = Dataset("d", 600, ("a", "c"))
    found = run(federated(A, B, C, links=links, datasets=[there]), [job("b:1", "d")])
    assert found.starts == {"b:1": 6.0}


def test_the_reason_names_the_dataset_and_when_it_is_expected():
    said = []

    class Asks:
        @hookimpl
        def observe(self, event, state):
            if isinstance(event, ev.DatasetCopying) or event.time == 20.0:
                said.extend(state.why_waiting(state.jobs[name]) for name in ("b:1", "b:2"))

    narrow = Site("b", store=Store(most_copies=1))
    cluster = federated(A, narrow, links=[WIRE], datasets=[D, E])
    run(cluster, [job("b:1", "d,e"), job("b:2", "e"), job("a:9", submit=20.0)], Staging(), Asks())
    half = "d (46 % of it has arrived from a, the rest is expected in 32 s)"
    assert f"it waits for datasets {half} and e (its copy waits for other copies to end)" in said
    assert "it waits for dataset e (its copy waits for other copies to end)" in said


def test_the_replica_that_was_used_least_recently_makes_room():
    small = Site("b", store=Store(capacity=1200))
    datasets = [Dataset("d", 500, ("a",)), Dataset("e", 600, ("a",)), Dataset("f", 200, ("a",))]
    jobs = [
        job("b:1", "d", 10), job("b:2", "e", 10), job("b:3", "d", 10, submit=200),
        job("b:4", "f", 10, submit=300),
    ]  # fmt: skip
    found = run(federated(A, small, links=[WIRE], datasets=datasets), jobs)
    # The second dataset came last, and the first one was read last.
    assert [(event.dataset, event.time) for event in told(found, ev.DatasetLost)] == [("e", 300.0)]
    assert found.starts["b:4"] == 325.0 and set(found.states.values()) == {"completed"}


def test_a_job_in_the_queue_whose_dataset_is_lost_waits_for_it_again():
    class Loses:
        """Removes the dataset while a job that reads it waits for processors."""

        @hookimpl
        def startup(self, state):
            state.wake_at(150.0, state.pools["b:q"])

        @hookimpl
        def react(self, state):
            return [d.Drop("d", "b")] if state.now == 150.0 and state.catalogue.has("d", "b") else None

        @hookimpl
        def control(self, state):
            if state.now == 166.25:
                said.append(state.why_waiting(state.jobs["b:3"]))

    said = []
    jobs = [job("b:1", "d", 10), job("b:2", seconds=300, submit=100), job("b:3", "d", 10, submit=120)]
    found = run(federated(A, B, links=[WIRE], datasets=[D], size=1), jobs, Staging(), Loses())
    assert [at for at, _ in decided(found, d.Copy)] == [0.0, 150.0]
    assert found.starts["b:3"] == 400.0 and found.problems == []
    # It is in no queue meanwhile, though nothing tried to start it.
    assert said == ["it waits for dataset d (19 % of it has arrived from a, the rest is expected in 49 s)"]
    late = run(federated(A, B, links=[WIRE], datasets=[D], size=1),
               [job("b:1", "d", 10), job("b:2", seconds=60, submit=100), job("b:3", "d", 10, submit=120)],
               Staging(), Loses())  # fmt: skip
    assert late.starts["b:3"] == 215.0 and late.problems == [] and not told(late, ev.DecisionFailed)


def test_what_a_running_job_reads_and_what_is_on_its_way_stays():
    small = Site("b", store=Store(capacity=1100))
    jobs = [job("b:1", "d", 1000), job("b:2", "e", 10), job("b:3", "f", 10)]
    found = run(federated(A, small, links=[WIRE], datasets=[D, E, F]), jobs)
    lost = told(found, ev.DatasetLost)
    assert [(event.dataset, event.time) for event in lost] == [("e", 65.0)]
    assert found.starts == {"b:1": 65.0, "b:2": 55.0, "b:3": 80.0}
    assert found.problems == [] and not told(found, ev.DecisionFailed)


def test_jobs_that_need_a_store_together_do_not_wait_for_each_other():
    # Each has room for its data; half of the data of both would leave room for neither.
    small = Site("b", store=Store(capacity=1000))
    halves = [Dataset(name, 500, ("a",)) for name in "defg"]
    jobs = [job("b:1", "d,e", 50), job("b:2", "f,g", 50), job("b:3", "d,e", 50)]
    found = run(federated(A, small, links=[WIRE], datasets=halves), jobs)
    assert set(found.states.values()) == {"completed"}
    assert found.starts["b:1"] == 55.0 and found.starts["b:2"] > 105.0


def test_a_copy_that_failed_is_tried_again_from_another_site_and_later_each_time():
    links = [WIRE, Link("c", "b", bandwidth=5.0)]
    there = Dataset("d", 600, ("a", "c"))
    cluster = federated(A, B, C, links=links, datasets=[there])
    found = run(cluster, [job("b:1", "d")], faults=Faults(copy_failure_rate=0.9), seed=3)
    copies, failed = decided(found, d.Copy), told(found, ev.CopyFailed)
    assert len(failed) >= 3 and len(copies) == len(failed) + 1
    assert [copy.source for _, copy in copies[:4]] == ["a", "c", "a", "c"]
    waits = [copies[at + 1][0] - failed[at].time for at in range(len(failed))]
    assert waits == pytest.approx([min(3600, 60 * 2**at) for at in range(len(failed))])
    assert found.states == {"b:1": "completed"}


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        ("x", "dataset 'x' is not configured"),
        ("d,e", "its datasets, with those that stay at b, have 1200 bytes, and the store of b has 1000"),
        ("n", "dataset n is at c, and no link leads from there to b"),
    ],
)
def test_a_job_whose_data_can_never_come_is_refused(data, reason):
    small = Site("b", store=Store(capacity=1000))
    datasets = [D, E, Dataset("n", 1, ("c",)), Dataset("own", 100, ("b",))]
    found = run(federated(A, small, C, links=[WIRE], datasets=datasets), [job("b:1", data)])
    assert reason in why(found, "b:1")
    assert decided(found, d.Copy) == []


def test_a_word_that_nothing_reads_may_be_a_dataset():
    odd = job("b:1", "d")
    attributes = {"data": "d", "unread": ["grid7"]}
    odd = msgspec.structs.replace(odd, job=msgspec.structs.replace(odd.job, attributes=attributes))
    found = run(federated(A, B, links=[WIRE], datasets=[D]), [odd])
    assert "refused: its comment: expected such as data=NAME,NAME and movable, found 'grid7'" in why(
        found, "b:1"
    )


def test_a_site_without_a_store_refuses_jobs_with_data():
    found = run(federated(A, Site("b"), links=[WIRE], datasets=[D]), [job("b:1", "d")])
    assert "it reads dataset d, and b has no store" in why(found, "b:1")


def test_staging_needs_sites():
    with pytest.raises(UserError, match="expected sites with stores"):
        emulate(ClusterDescription.flat(4), [], Fcfs(), Staging())


def test_a_job_that_may_not_start_has_nothing_copied():
    found = run(federated(A, B, links=[WIRE], datasets=[D]), [job("b:1", "d", held=True)])
    assert decided(found, d.Copy) == []


def test_the_figures_count_copies_drops_hits_and_waits():
    plugin = Staging()
    jobs = [job("b:1", "d", 10), job("b:2", "d", 10, submit=100), job("a:1", "d,e", 10)]
    # What a job waits for another job is no wait for data.
    jobs[:0] = [job("b:0", seconds=90), job("b:3", "d", 10, dependencies=(Dependency("ended", "b:0"),))]
    run(federated(A, B, links=[WIRE], datasets=[D, E]), jobs, plugin)
    assert plugin.told(None) == {
        "copies": 1, "bytes_copied": 600, "failed_copies": 0, "drops": 0,
        "replica_hits": 4, "replica_misses": 1, "seconds_waited": 65.0,
    }  # fmt: skip


def test_measured_copies_correct_the_bandwidth():
    # Three copies share the link, so each takes three times as long as its bandwidth says.
    plugin = Staging()
    jobs = [job("b:1", "d,e,g", 10)]
    datasets = [Dataset(name, 500, ("a",)) for name in "deg"]
    cluster = federated(A, B, links=[WIRE], datasets=datasets)
    run(cluster, jobs, plugin, fair_links=True)
    catalogue = plugin.supply.catalogue
    assert catalogue.seconds("d", "a", "b") == 55.0
    assert plugin.supply.copies.measured.seconds(catalogue, "d", "a", "b") == pytest.approx(155.0)
    assert plugin.supply.copies.measured.wrong == 3
    saved = plugin.checkpoint()
    again = Staging()
    run(cluster, [], again)
    again.restore(saved)
    assert again.supply.copies.measured.seconds(catalogue, "d", "a", "b") == pytest.approx(155.0)


def test_staging_is_no_policy():
    cluster = federated(A, B, links=[WIRE], datasets=[D])
    found = emulate(cluster, [job("b:1", "d"), job("b:2")], Easy(), Staging())
    assert set(found.states.values()) == {"completed"}
