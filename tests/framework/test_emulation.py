"""Whole runs: what becomes of jobs that wait in vain, and whose seed plugins draw by."""

from __future__ import annotations

from building import traced

from headway.emulation import emulate
from headway.energy.profiles import load_profile, with_energy
from headway.metrics import summarise
from headway.model import ClusterDescription
from headway.plugins import Catalogue, PluginConfig

CATALOGUE = Catalogue()


def run(jobs, *configs, processors=8, seed=0):
    cluster = ClusterDescription.flat(processors)
    cluster = with_energy(cluster, load_profile("chandio2014", "test", None), {}, "test")
    return emulate(cluster, jobs, [PluginConfig(*each) for each in configs], CATALOGUE, label="x", seed=seed)


def test_jobs_that_wait_in_vain_are_refused_and_not_pending():
    jobs = [
        traced("fits", 1),
        traced("too large", 9),
        traced("too much power", 8),
        traced("held", 1, held=True),
    ]
    result = run(jobs, ("fcfs", {}), ("power-cap", {"watts": 100, "slow": False}))
    states = {job.job.id: job.state for job in result.jobs}
    assert states == {
        "fits": "completed",
        "too large": "refused",
        "too much power": "refused",
        "held": "pending",
    }
    counts = summarise(result)["counts"]
    assert counts["by_state"] == {"completed": 1, "pending": 1, "refused": 2}
    assert counts["refused"] == 2
    assert sorted(counts["refused_by_reason"]) == [
        "it draws 133 W with its pool at the lowest power, and the power cap is 100 W",
        "it draws 149 W with its pool at the lowest power, and the power cap is 100 W",
    ]


def test_the_summary_says_why_a_job_was_refused_that_its_pool_could_never_hold():
    counts = summarise(run([traced("fits", 1), traced("too large", 9)], ("fcfs", {})))["counts"]
    assert (counts["refused"], counts["by_state"]["refused"]) == (1, 1)
    assert list(counts["refused_by_reason"]) == ["it needs 9 processors, and pool 'pool' has 8"]


def deadlines(of_run, **options):
    """When jobs end whose deadlines are drawn: the slower, the later."""
    jobs = [traced(str(at), 1, 1000) for at in range(8)]
    result = run(jobs, ("fcfs", {}), ("dvfs", {"deadlines": "random", **options}), seed=of_run)
    return [job.end_time for job in result.jobs]


def test_drawn_deadlines_follow_the_seed_of_the_run_unless_the_plugin_has_its_own():
    assert deadlines(1) == deadlines(1)
    assert deadlines(1) != deadlines(2)
    assert deadlines(1, seed=7) == deadlines(2, seed=7)
