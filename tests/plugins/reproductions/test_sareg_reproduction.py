"""The experiments on SAREG, made small, and the ratio that explains the gain over NS-EDF."""

import numpy as np
import pytest

from headway.experiment.reproduction import Context
from headway_plugins.reproductions.sareg import SaregReproduction, jobs_of
from headway_plugins.security.levels import profile_2005
from headway_plugins.security.workload import Settings, draw


def drawn(settings, count=4000, seed=3):
    rng = np.random.default_rng(0)
    return draw(
        np.random.default_rng(seed), settings, profile_2005(), names=[str(n) for n in range(count)],
        submit=np.cumsum(rng.exponential(100, count)), runtime=rng.lognormal(6, 2, count),
        processors=rng.integers(1, 40, count),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("ranges", "upper", "uniform"),
    [
        ("pair", 0.68524, 0.53500),
        ("full", 0.93, 0.535),
        ("top", 0.93, 0.7325),
        ("bottom", 0.535, 0.3375),
    ],
)
def test_t10_the_mean_levels_at_the_upper_end_and_of_a_draw(ranges, upper, uniform):
    _, jobs = drawn(Settings(ranges=ranges))
    found = [np.mean([job.need.level(s(job)) for job in jobs]) for s in (
        lambda job: job.need.highest, lambda job: job.drawn)]  # fmt: skip
    assert found == pytest.approx([upper, uniform], abs=0.01)


def test_the_draws_do_not_depend_on_what_is_varied():
    (_, one), (_, other) = drawn(Settings(), 50), drawn(Settings(laxity=800, speed=4), 50)
    for a, b in zip(one, other, strict=True):
        assert (a.home, a.volume, a.drawn, a.need.ladders) == (b.home, b.volume, b.drawn, b.need.ladders)
        assert b.execution == pytest.approx(a.execution / 2)
        assert b.deadline - b.arrival - b.execution - 800 == pytest.approx(b.need.cost(b.need.highest))


def test_data_takes_the_slower_way_only_between_sites():
    grid, jobs = drawn(Settings(bandwidth=5e6), 10)
    job = jobs[0]
    assert grid.transfer(job, job.home) == 0
    assert grid.transfer(job, (job.home + 1) % 4) == pytest.approx(job.volume / 5e6)


def test_without_the_trace_nothing_is_run(tmp_path):
    context = Context(tmp_path, (1, 2), 1, None, lambda name, count: None, lambda count: None, [])
    (claim,) = SaregReproduction().run(context)
    assert claim.holds == "not run" and "SDSC-SP2" in claim.measured


def trace(path, count=60):
    rng = np.random.default_rng(5)
    submit = np.cumsum(rng.integers(0, 900, count))
    lines = ["; Version: 2.2", "; MaxProcs: 128"]
    for n in range(count):
        seconds = 0 if n == 3 else int(rng.integers(10, 20000))
        size = int(rng.integers(1, 60))
        lines.append(f"{n + 1} {submit[n]} 0 {seconds} {size} -1 -1 {size} {seconds} -1 1 1 1 1 1 1 -1 -1")
    path.write_text("\n".join(lines) + "\n")


def test_a_small_run_judges_every_claim(tmp_path):
    trace(tmp_path / "SDSC-SP2-1998-4.2-cln.swf")
    assert len(jobs_of(tmp_path / "SDSC-SP2-1998-4.2-cln.swf", 100).names) == 59
    context = Context(tmp_path, (1, 2), 1, tmp_path, lambda name, count: None, lambda count: None, [])
    paper = SaregReproduction(jobs=40, laxities=(50, 800), sites=(2,), speeds=(2,), intervals=(0, 145))
    claims = paper.run(context)
    assert {claim.holds for claim in claims} <= {"yes", "in part", "no", "-"}
    assert len([c for c in claims if c.size]) == 5
    alike = next(c for c in claims if "less than 2 %" in c.paper)
    assert alike.holds == "yes"
    assert (tmp_path / "figure-4.png").exists()
    rows = dict(context.rows)
    assert {row.variant for row in rows["figure-6"]} == {"SAREG", "NS-EDF", "MINMIN 0", "SUFFER 0"}
    wide = [row.values["guarantee ratio"] for row in rows["figure-4"]]
    assert all(0 <= ratio < 1 for ratio in wide)
