"""Elastic job bundling over EASY in whole runs: small ones worked out by hand, and real ones."""

import pytest
from building import emulate, traced

from headway.emulation import emulate as run_emulation
from headway.model import ClusterDescription
from headway.model.bundles import Oversubscription
from headway.plugins import Catalogue, PluginConfig
from headway.workload import read_swf, trace_jobs
from headway_plugins.bundling.figures import fragmentation
from headway_plugins.bundling.manager import Bundling, BundlingOptions
from headway_plugins.policies.easy import Easy


def run(processors, jobs, *plugins, penalty=1.0, migration=20.0, **options):
    """``jobs``: (submit, processors, estimate, runtime), numbered from 0."""
    chosen = BundlingOptions(penalty=penalty, migration=migration, **options)
    traces = [traced(str(at), p, e, s, runtime=r) for at, (s, p, e, r) in enumerate(jobs)]
    found = emulate(
        ClusterDescription.flat(processors), traces, *(plugins or (Easy(), Bundling(chosen))),
        oversubscription=Oversubscription(penalty, migration, options.get("migration_per_process", 0.0)),
    )  # fmt: skip
    assert found.problems == []
    return found.adapter.results()


def times(job):
    return pytest.approx((job.start_time, job.end_time), abs=1e-4)


#: jobs -> (start, end) under EASY and under bundling, and the members (start, end, processors) and migrations
#: of those that run as bundles
RUNS = {
    "S1": (
        10, [(0, 6, 1000, 1000), (10, 8, 600, 600)], [(0, 1000), (1000, 1600)], [(0, 1000), (10, 1135)],
        {1: ([(10, 1000, 2), (10, 1020, 2), (1000, 1135, 8)], 2)},
    ),
    "S2": (
        10, [(0, 6, 1000, 1000), (10, 8, 600, 300)], [(0, 1000), (1000, 1300)], [(0, 1000), (10, 610)],
        {1: ([(10, 610, 2), (10, 610, 2)], 0)},
    ),
    "S3": (
        10, [(0, 6, 1000, 500), (10, 8, 600, 600)], [(0, 500), (500, 1100)], [(0, 500), (10, 875)],
        {1: ([(10, 875, 2), (10, 875, 2), (500, 875, 4)], 1)},
    ),
    "S4": (
        16, [(0, 10, 1000, 1000), (5, 16, 400, 400), (10, 4, 200, 200), (20, 12, 300, 300)],
        [(0, 1000), (1000, 1400), (10, 210), (1400, 1700)],
        [(0, 1000), (1000, 1400), (10, 210), (210, 810)], {3: ([(210, 810, 6)], 0)},
    ),
    "S5": (
        16, [(0, 10, 2000, 600), (0, 4, 2000, 2000), (5, 14, 800, 800)],
        [(0, 600), (0, 2000), (2000, 2800)], [(0, 600), (0, 2000), (5, 2055)],
        {2: ([(5, 2020, 2), (600, 2000, 5), (2000, 2055, 14)], 3)},
    ),
    "S6": (
        16, [(0, 10, 2000, 2000), (0, 4, 2000, 300), (5, 12, 800, 800)],
        [(0, 2000), (0, 300), (2000, 2800)], [(0, 2000), (0, 300), (5, 1821.667)],
        {2: ([(5, 1821.667, 2), (300, 1821.667, 4)], 1)},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", RUNS)
def test_the_same_without_bundling(name):
    processors, jobs, baseline, _, _ = RUNS[name]
    assert [times(job) for job in run(processors, jobs, Easy())] == baseline


@pytest.mark.parametrize("name", RUNS)
def test_whole_runs(name):
    processors, jobs, _, expected, bundles = RUNS[name]
    found = run(processors, jobs)
    assert [(job.start_time, job.end_time) for job in found] == [pytest.approx(e, abs=1e-3) for e in expected]
    for at, (members, migrations) in bundles.items():
        assert [(m.start, m.end, m.processors) for m in found[at].members] == [
            pytest.approx(member, abs=1e-3) for member in members
        ]
        assert found[at].migrations == migrations
    assert {at for at, job in enumerate(found) if job.members} == set(bundles)
    assert all(job.state == "completed" for job in found)


def test_moves_that_last_by_the_number_of_processes():
    """12 s and one for each of the 8 processes: the 20 s of the first run."""
    processors, jobs, _, expected, _ = RUNS["S1"]
    found = run(processors, jobs, migration=12.0, migration_per_process=1.0)
    assert [times(job) for job in found] == expected


def test_a_bundle_that_completes_first_gives_its_reservation_up():
    """Job 1 completes at 1210 on 4 of 9 processors and could start at 1300; job 2 would outlast that."""
    jobs = [(0, 3, 1300, 1300), (10, 8, 600, 600), (20, 2, 3000, 3000)]
    assert [job.start_time for job in run(9, jobs)] == [0, 10, 1210]
    released = run(9, jobs, release_reservation=True)
    assert [(job.start_time, job.end_time) for job in released] == [(0, 1300), (10, 1210), (20, 3020)]


@pytest.mark.traces
def test_the_first_jobs_of_kth_against_the_reference(trace_dir):
    """Against an independent implementation in exact fractions."""
    trace = read_swf(next(trace_dir.glob("KTH*")))
    found = whole(trace_jobs(trace, 100)[0][:3000], 100)
    assert found == {
        "elastic": (783, pytest.approx(13099.84, abs=0.005), pytest.approx(7725.77, abs=0.005)),
        "others": (2217, pytest.approx(1780.48, abs=0.005), pytest.approx(6798.30, abs=0.005)),
        "fragmentation": pytest.approx(4.8700, abs=5e-5),
        "subjobs": 1573,
        "migrations": 637,
    }


@pytest.mark.traces
@pytest.mark.campaign
@pytest.mark.parametrize(
    ("pattern", "jobs", "elastic", "others", "idle", "subjobs", "migrations"),
    [
        ("KTH*", 27992, (5675, 13520.60, 11854.99), (2752.17, 8175.07), 6.2182, 11854, 5621),
        ("SDSC-SP2*", 54044, (18929, 28538.21, 11760.92), (3809.86, 6069.34), 5.3407, 36429, 15014),
        ("CTC*", 77222, (21503, 25982.92, 9456.69), (6254.06, 12321.43), 22.9669, 44267, 19329),
    ],
)  # fmt: skip
def test_whole_traces_against_the_reference(
    trace_dir, pattern, jobs, elastic, others, idle, subjobs, migrations
):
    trace = read_swf(next(trace_dir.glob(pattern)))
    taken, _ = trace_jobs(trace, trace.max_processors)
    assert len(taken) == jobs
    assert whole(taken, trace.max_processors) == {
        "elastic": (elastic[0], pytest.approx(elastic[1], abs=0.005), pytest.approx(elastic[2], abs=0.005)),
        "others": (jobs - elastic[0], *(pytest.approx(each, abs=0.005) for each in others)),
        "fragmentation": pytest.approx(idle, abs=5e-5),
        "subjobs": subjobs,
        "migrations": migrations,
    }


def whole(jobs, processors):
    """Means of wait and run of those that are elastic and of the others, and what the bundles had."""
    catalogue = Catalogue()
    configs = catalogue.enabled([PluginConfig("ejb", {})])
    result = run_emulation(ClusterDescription.flat(processors), jobs, configs, catalogue, label="ejb")
    classes = {"elastic": [], "others": []}
    for job in result.jobs:
        waited = job.start_time > job.job.submit_time and job.job.request.processors >= 8
        classes["elastic" if job.members or waited else "others"].append(job)
    return {
        **{
            name: (
                len(found),
                sum(job.start_time - job.job.submit_time for job in found) / len(found),
                sum(job.end_time - job.start_time for job in found) / len(found),
            )
            for name, found in classes.items()
        },
        "fragmentation": fragmentation(result),
        "subjobs": sum(max(1, len(job.members)) for job in classes["elastic"]),
        "migrations": sum(job.migrations for job in classes["elastic"]),
    }


def test_a_subjob_competes_in_its_round_before_a_job_that_ends_at_once_is_gone():
    """At 10 s job 2, which takes no time, is backfilled and two processors are left: job 1 gets them for a
    subjob. If that were only looked at after job 2's end, job 3, which needs four, would have had them."""
    found = run(10, [(0, 6, 9000, 9000), (10, 10, 600, 600), (10, 2, 100, 0), (10, 4, 100, 100)])
    assert times(found[2]) == (10, 10)
    assert min((member.start, member.processors) for member in found[1].members) == (10, 2)
    assert found[3].start_time > 10
