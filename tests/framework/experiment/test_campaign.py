"""Campaigns: every variant meets every workload, and the file says so."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from headway.errors import UserError
from headway.experiment import Campaign, Scenario, Variant, campaign
from headway.experiment.campaign import drawn, points, select, write_rows
from headway.experiment.definition import load_campaign
from headway.experiment.execution import run_campaign
from headway.plugins import Catalogue, PluginConfig
from headway.workload import read_trace

FCFS, EASY = (Variant(name, (PluginConfig(name),)) for name in ("fcfs", "easy"))
SMALL = {"processors": 64, "days": 2}


def month(label="month", x=0.0, **options):
    return Scenario(label, x, 64, model="month", options={**SMALL, **options})


def test_every_variant_runs_on_every_scenario_with_every_seed():
    plan = Campaign((FCFS, EASY), (month(x=0.5, load=0.5), month(x=0.9, load=0.9)), (1, 2))
    done = []
    rows = run_campaign(plan, on_done=done.append)
    assert plan.size() == len(rows) == sum(done) == 8
    assert list(points(rows)) == [("month", 0.5), ("month", 0.9)]
    assert [(r.x, r.seed, r.variant) for r in rows[:3]] == [
        (0.5, 1, "fcfs"),
        (0.5, 1, "easy"),
        (0.5, 2, "fcfs"),
    ]
    assert len(select(rows, "mean wait", variant="easy", x=0.9)) == 2


def test_processes_give_the_same_rows_as_one():
    plan = Campaign((EASY,), (month(load=0.8),), (1, 2, 3))
    # As text, because a metric without a value is NaN, which equals nothing.
    assert repr(run_campaign(plan, workers=2)) == repr(run_campaign(plan))


def test_variants_meet_the_same_jobs():
    rows = run_campaign(Campaign((FCFS, EASY), (month(load=0.8),), (4,)))
    assert rows[0].values["jobs"] == rows[1].values["jobs"]
    assert rows[0].values["mean runtime"] == rows[1].values["mean runtime"]


def test_a_trace_has_one_seed(tmp_path: Path):
    trace = tmp_path / "two.swf"
    trace.write_text(
        "; MaxProcs: 4\n" + "\n".join(f"{n} {n} -1 10 4 -1 -1 4 10 -1 1 1 1 1 -1 -1 -1 -1" for n in (1, 2))
    )
    plan = Campaign((EASY,), (Scenario("two", 1.0, 4, trace=str(trace)),), (1, 2, 3))
    (row,) = run_campaign(plan)
    assert row.values["mean wait"] == 4.5


def test_waits_are_told_by_user_and_by_account(tmp_path: Path):
    """Two jobs of user 1 wait 0 and 10 s, one of user 2 waits 20 s; they are of two groups and of none."""
    trace = tmp_path / "three.swf"
    whose = ((1, 1), (1, 2), (2, -1))
    trace.write_text(
        "; MaxProcs: 4\n"
        + "\n".join(
            f"{n} 0 -1 10 4 -1 -1 4 10 -1 1 {user} {group} 1 -1 -1 -1 -1"
            for n, (user, group) in enumerate(whose, start=1)
        )
    )
    (row,) = run_campaign(Campaign((FCFS,), (Scenario("three", 1.0, 4, trace=str(trace)),), (1,)))
    assert (row.values["mean wait by user"], row.values["worst mean wait by user"]) == (12.5, 20.0)
    assert (row.values["mean wait by account"], row.values["worst mean wait by account"]) == (5.0, 10.0)


def test_jobs_of_nobody_have_no_waits_by_user():
    (row,) = run_campaign(
        Campaign((FCFS,), (Scenario("f", 1.0, 64, model="feitelson96", options={"jobs": 50}),), (1,))
    )
    assert math.isnan(row.values["mean wait by user"]) and math.isnan(
        row.values["worst mean wait by account"]
    )


def test_accounts_of_the_month_change_nothing_else():
    plain, shared = (
        run_campaign(Campaign((FCFS,), (month(**more),), (1,)))[0] for more in ({}, {"accounts": 3})
    )
    assert plain.values["mean wait by user"] == shared.values["mean wait by user"]
    assert math.isnan(plain.values["mean wait by account"])
    assert shared.values["mean wait by account"] <= shared.values["worst mean wait by account"]


def test_an_unknown_model_names_the_nearest():
    plan = Campaign((EASY,), (Scenario("x", 0.0, 4, model="mont"),), (1,))
    with pytest.raises(UserError, match=r"'mont' is not installed.*month"):
        run_campaign(plan)


def test_rows_have_the_means_of_each_class_of_jobs(tmp_path: Path):
    # On 4 processors, one after the other: 10 s on 4 twice, and two hours on 1.
    trace = tmp_path / "three.swf"
    jobs = ((1, 0, 10, 4), (2, 0, 10, 4), (3, 0, 7200, 1))
    line = "{0} {1} -1 {2} {3} -1 -1 {3} {2} -1 1 1 1 1 -1 -1 -1 -1"
    trace.write_text("; MaxProcs: 4\n" + "\n".join(line.format(*job) for job in jobs))
    (row,) = run_campaign(Campaign((FCFS,), (Scenario("three", 1.0, 4, trace=str(trace)),), (1,)))
    assert row.values["mean turnaround"] == pytest.approx((10 + 20 + 7220) / 3)
    assert row.values["slowdown ratio"] == pytest.approx(7250 / 7220)
    assert row.values["mean wait SW"] == 5
    assert row.values["mean slowdown SW"] == 1.5
    assert row.values["mean turnaround LN"] == 7220
    assert math.isnan(row.values["mean wait SN"])


def test_rows_are_written_one_a_line(tmp_path: Path):
    rows = run_campaign(Campaign((EASY,), (month(load=0.5),), (1,)))
    write_rows(tmp_path / "rows.csv", rows)
    head, line = (tmp_path / "rows.csv").read_text().splitlines()
    assert head.startswith("scenario,x,variant,seed,jobs,utilisation,mean wait")
    assert line.startswith("month,0,easy,1,")


def test_a_campaign_file(tmp_path: Path):
    file = tmp_path / "c.yaml"
    file.write_text(
        "processors: 64\n"
        "policies: [easy, {label: D, plugins: [easy, {dedicated: {freeze: first}}]}]\n"
        "workloads:\n"
        "  - {model: month, options: {days: 2}, loads: [0.5, 0.7]}\n"
        "  - {trace: log.swf, arrival_factors: [1, 0.9]}\n"
        "seeds: 3\n"
    )
    plan = load_campaign(file)
    assert [v.label for v in plan.variants] == ["easy", "D"]
    assert plan.variants[1].plugins[1].options == {"freeze": "first"}
    assert [(s.x, dict(s.options).get("load")) for s in plan.scenarios[:2]] == [(0.5, 0.5), (0.7, 0.7)]
    assert plan.scenarios[3].trace == str(tmp_path / "log.swf")
    assert plan.seeds == (1, 2, 3)
    assert plan.size() == 2 * 2 * 3 + 2 * 2


ENERGY = """
nodes: [{count: 2, processors: 4, class: node}, {count: 2, processors: 8, prefix: big}]
energy: present-day
policies: [easy, {label: D, plugins: [easy, dvfs]}]
workloads: [{model: month, options: {days: 1}, loads: [0.5]}]
seeds: 1
"""


def test_a_campaign_on_nodes_with_an_energy_profile(tmp_path: Path):
    file = tmp_path / "c.yaml"
    file.write_text(ENERGY)
    plan = load_campaign(file)
    (scenario,) = plan.scenarios
    assert (scenario.processors, scenario.options["processors"]) == (24, 24)
    assert len(scenario.cluster.nodes) == 4 and scenario.cluster.energy.name == "present-day"
    easy, dvfs = run_campaign(plan)
    assert easy.values["energy"] > easy.values["energy of jobs"] > dvfs.values["energy of jobs"] > 0
    assert easy.values["peak power"] >= easy.values["energy"] / easy.values["makespan"]
    write_rows(tmp_path / "rows.csv", [easy, dvfs])
    head = (tmp_path / "rows.csv").read_text().splitlines()[0]
    assert head.endswith(",energy,energy of jobs,peak power")


#: Two jobs of queue 0 come before one of queue 1 unless tiers say otherwise;
#: the last is larger than the pool of its queue.
QUEUES = "".join(
    f"{number} {at} -1 100 {size} -1 -1 {size} 100 -1 1 1 1 1 {queue} -1 -1 -1\n"
    for number, at, size, queue in [(1, 0, 4, 0), (2, 1, 4, 0), (3, 2, 4, 1), (4, 3, 8, 0)]
)
POOLS = """
nodes: [{count: 1, processors: 4, pool: [small, large]}, {count: 1, processors: 4, pool: large, prefix: x}]
policies: [fcfs]
workloads: [{trace: queues.swf}]
seeds: 1
method: {warmup: none, cooldown: none}
"""


@pytest.mark.parametrize(
    ("more", "waits"),
    [
        ("trace_pools: {by: queue, of: {0: small, 1: large}}", [0, 99, 98]),
        ("trace_pools: {by: queue, of: {0: small}, others: large}\npools: {large: {tier: 2}}", [0, 99, 0]),
    ],
    ids=["in the order of submission", "by tiers"],
)
def test_a_traces_jobs_go_to_pools_that_share_nodes(tmp_path: Path, more: str, waits: list[float]):
    (tmp_path / "queues.swf").write_text(QUEUES)
    file = tmp_path / "c.yaml"
    file.write_text(POOLS + more)
    plan = load_campaign(file)
    (found,) = run_campaign(plan)
    assert found.values["mean wait"] == pytest.approx(sum(waits) / 3)
    assert [one.job_id for one in drawn(plan.scenarios[0], 1, Catalogue()).refused] == ["4"]


@pytest.mark.parametrize("workload", ["trace: queues.swf", "model: month, options: {days: 1}"])
def test_jobs_go_to_the_pool_that_the_nodes_form(tmp_path: Path, workload: str):
    (tmp_path / "queues.swf").write_text(QUEUES)
    file = tmp_path / "c.yaml"
    file.write_text(
        f"nodes: [{{count: 2, processors: 4, pool: batch}}]\npolicies: [fcfs]\nworkloads: [{{{workload}}}]\n"
        "seeds: 1\nmethod: {warmup: none, cooldown: none}\n"
    )
    (found,) = run_campaign(load_campaign(file))
    assert found.values["measured jobs"] >= 4


def test_a_profile_beside_the_campaign_and_its_classes(tmp_path: Path):
    (tmp_path / "mine.yaml").write_text(
        "name: mine\nclasses:\n"
        "  - {name: a, frequency: 3.0e9, levels: {0: {frequency: 1.0, voltage: 1.0}}}\n"
        "  - {name: b, frequency: 3.0e9, levels: {0: {frequency: 1.0, voltage: 1.0}}}\n"
    )
    file = tmp_path / "c.yaml"
    file.write_text(
        "nodes: [{count: 2, processors: 4}]\nenergy: {profile: mine.yaml, classes: {n2: b}}\n"
        "policies: [easy]\nworkloads: [{model: month}]\n"
    )
    (scenario,) = load_campaign(file).scenarios
    assert [node.node_class for node in scenario.cluster.nodes] == ["a", "b"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("energy: present-dya\nprocessors: 4", r"energy: no energy profile is called 'present-dya'.*present"),
        ("energy: none.yaml\nprocessors: 4", r"energy: .*found no file .*none.yaml"),
        ("energy: {profil: x}\nprocessors: 4", r"energy.profil: unknown key"),
        (
            "energy: {profile: present-day, classes: {n1: gpu}}\nnodes: [{count: 1, processors: 4}]",
            r"energy.classes: n1: no class of profile 'present-day' is called 'gpu'",
        ),
        ("nodes: [{count: 1, processors: 4, class: gpu}]\nenergy: present-day", r"node n1: no class of"),
        ("processors: 4\nnodes: [{count: 1, processors: 4}]", "either processors"),
        ("seeds: 4", "either processors"),
        (
            "nodes: [{count: 1, processors: 4}, {count: 1, processors: 4, pool: other}]",
            "nodes of one pool, or traces alone and trace_pools; found other, pool",
        ),
        ("processors: 4\npools: {pol: {tier: 1}}", r"pools: no pool is called 'pol'\. Did you mean 'pool'\?"),
        ("processors: 4\npolicies: [sjf-ee]", r"policies\[0\].*'dvfs' needs an energy profile"),
    ],
)
def test_a_wrong_machine_says_where(tmp_path: Path, text: str, message: str):
    file = tmp_path / "c.yaml"
    rest = "" if "policies" in text else "policies: [easy]\n"
    file.write_text(f"{rest}workloads: [{{model: month}}]\n{text}\n")
    with pytest.raises(UserError, match=message):
        load_campaign(file)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("processors: 0\npolicies: [easy]\nworkloads: [{model: month}]", "processors: expected"),
        ("processors: 4\npolicies: []\nworkloads: [{model: month}]", "policies"),
        ("processors: 4\npolicies: [easy]\nworkloads: [{}]", "either model or trace"),
        ("processors: 4\npolicies: [easy]\nworkload: [{model: month}]", "unknown key"),
        ("[]", "expected keys"),
        ("a: [", "not valid YAML"),
    ],
)
def test_a_wrong_campaign_file_says_where(tmp_path: Path, text: str, message: str):
    file = tmp_path / "c.yaml"
    file.write_text(text)
    with pytest.raises(UserError, match=message):
        load_campaign(file)


def test_the_campaigns_that_ship_are_right():
    for file in sorted((Path(__file__).parents[3] / "etc" / "campaigns").glob("*.yaml")):
        assert load_campaign(file).size() > 0


def test_estimate_models_are_a_factor_of_a_workload(tmp_path: Path):
    (tmp_path / "site.yaml").write_text("model: f-model\noptions: {f: 2}\n")
    file = tmp_path / "campaign.yaml"
    file.write_text(
        """
processors: 64
seeds: 2
policies: [easy]
workloads:
  - model: lublin
    options: {jobs: 400}
    loads: [0.6, 0.9]
    estimates: [own, exact, site.yaml, {model: tsafrir05, options: {maximum: 3d}, label: modal}]
"""
    )
    plan = load_campaign(file)
    assert [(s.label, s.x) for s in plan.scenarios] == [
        (f"lublin, {name}", load) for name in ("own", "exact", "site.yaml", "modal") for load in (0.6, 0.9)
    ]
    rows = run_campaign(plan)
    assert len(rows) == 16
    waits = {(row.scenario, row.x, row.seed): row.values["mean wait"] for row in rows}
    assert waits["lublin, own", 0.9, 1] != waits["lublin, modal", 0.9, 1]


def test_a_wrong_estimate_model_says_where(tmp_path: Path):
    file = tmp_path / "campaign.yaml"
    file.write_text(
        "processors: 64\npolicies: [easy]\nworkloads:\n"
        "  - {model: lublin, estimates: [{model: f-model, options: {g: 1}}]}\n"
    )
    with pytest.raises(UserError, match=r"campaign.yaml: estimates: f-model has no option 'g'"):
        load_campaign(file)


def test_a_trace_is_read_once_for_all_seeds_and_again_when_it_has_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    trace = tmp_path / "weeks.swf"
    line = "{n} {at} -1 10 4 -1 -1 4 10 -1 1 1 1 1 -1 -1 -1 -1\n"
    trace.write_text(
        "; MaxProcs: 4\n; UnixStartTime: 0\n; TimeZoneString: UTC\n"
        + "".join(line.format(n=n, at=n * 86400) for n in range(1, 30))
    )
    read: list[str] = []
    monkeypatch.setattr(campaign, "read_trace", lambda path: [read.append(path), read_trace(path)][1])
    plan = Campaign((EASY,), (Scenario("weeks", 1.0, 4, trace=str(trace), resample="weeks"),), (1, 2, 3))
    assert len(run_campaign(plan)) == 3
    assert read == [str(trace)]
    with trace.open("a") as file:
        file.write(line.format(n=30, at=30 * 86400))
    run_campaign(plan)
    assert read == [str(trace), str(trace)]
