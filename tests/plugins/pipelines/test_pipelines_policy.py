"""The policy ``pipelines`` in emulation: one job at a time, the copies that strategies give, and what they
cost."""

import json

import numpy as np
import pytest

from headway.emulation import emulate
from headway.errors import UserError
from headway.model import ClusterDescription, JobDescription, Request
from headway.plugins import Catalogue, PluginConfig
from headway.workload import TraceJob
from headway_plugins.pipelines.execution import ExecutionModel
from headway_plugins.pipelines.pipeline import Filter, Pipeline
from headway_plugins.pipelines.policy import PipelineOptions, Pipelines, measured
from headway_plugins.pipelines.profiles import Profile
from headway_plugins.pipelines.tamandua import CLASSES, TamanduaModel, TamanduaOptions, is_short, node_sizes

ORDER = ("OAS", "OBS", "BS", "NOAS", "AS")


def workload(jobs=300, seed=1, **options):
    return TamanduaModel().generate(np.random.default_rng(seed), TamanduaOptions(jobs=jobs, **options)).jobs


def run(jobs, strategy="OAS", processors=8, **options):
    configs = [PluginConfig("pipelines", {"strategy": strategy, **options})]
    return emulate(ClusterDescription.flat(processors), jobs, configs, Catalogue(), label=strategy,
                   keep_decisions=True)  # fmt: skip


def kind(job):
    return (
        "short"
        if is_short(np.array([job.job.attributes["pipeline"]["parameters"]["minimum_node_size"]]))[0]
        else "long"
    )


# ---------------------------------------------------------------------- 10: run times by table


def seconds(which, strategy):
    times = CLASSES[which]
    if strategy in ("OAS", "OBS"):
        return times["sequential"] if which == "short" else times[{"OAS": "NOAS", "OBS": "BS"}[strategy]]
    return times[strategy]


@pytest.mark.parametrize("strategy", ORDER)
def test_10_every_job_runs_as_the_table_says_one_at_a_time(strategy):
    jobs = workload(jobs=60, arrivals="medium")
    result = run(jobs, strategy)
    ends = 0.0
    for job in result.jobs:
        assert job.state == "completed" and job.start_time >= ends - 1e-6
        ends = job.end_time
        assert ends - job.start_time == pytest.approx(seconds(kind(job), strategy), rel=1e-6)


def test_a_pipeline_has_the_machine_to_itself_though_it_asks_for_less():
    jobs = [TraceJob(JobDescription(str(at), float(at), Request(1, 100.0)), 50.0) for at in range(3)]
    assert [job.start_time for job in run(jobs).jobs] == [0.0, 50.0, 100.0]


def test_10_the_table_has_the_published_means():
    short = is_short(node_sizes(np.random.default_rng(1), 100_000))
    for strategy, mean in {"AS": 179.67, "BS": 154.29, "NOAS": 160.15, "OAS": 102.98, "OBS": 105.40}.items():
        found = np.where(short, seconds("short", strategy), seconds("long", strategy)).mean()
        assert found == pytest.approx(mean, rel=0.01), strategy


@pytest.mark.parametrize(
    ("arrivals", "metric"), [("medium", "mean_response_seconds"), ("light", "idle_seconds")]
)
def test_10_orders_at_medium_and_light_load(arrivals, metric):
    jobs = workload(arrivals=arrivals)
    found = [measured(run(jobs, strategy))[metric] for strategy in ORDER]
    if arrivals == "light":
        found.reverse()
    assert found == sorted(found) and len(set(found)) == 5


# ---------------------------------------------------------------------- copies, profiles, refusals


def test_a_start_says_which_copies_and_why():
    result = run(workload(jobs=5, times="model", arrivals="heavy"), "NOAS")
    reason = result.decisions[0].decision.reason
    assert (
        reason
        == "copies: read 6, count 1, decide 1 (NOAS: by shares of bytes and time of the controlled run)"
    )


def pipeline_job(number, said, runtime=100.0):
    attributes = {"pipeline": said} if said is not None else None
    return TraceJob(JobDescription(str(number), 0.0, Request(8, 1e5), attributes=attributes), runtime)


FILTERS = {"a": {"bytes": 600, "seconds": 60}, "b": {"bytes": 400, "seconds": 40}}


@pytest.fixture
def files(tmp_path):
    path = tmp_path / "p.yaml"
    path.write_text(
        "program: p\nparameters: {x: [1, 3]}\nfilters: [{name: a}, {name: b}]\n", encoding="utf-8"
    )
    profiles = [
        {"program": "p", "parameters": {"x": x}, "filters": FILTERS, "wall": w} for x, w in ((1, 60), (3, 2))
    ]
    store = tmp_path / "profiles.json"
    store.write_text(json.dumps({"headway_profiles": 1, "profiles": profiles}), encoding="utf-8")
    return {"pipelines": [str(path)], "store": str(store)}


def test_profiles_come_from_the_store(files):
    jobs = [pipeline_job(x, {"program": "p", "parameters": {"x": x}}, wall) for x, wall in ((1, 60), (3, 2))]
    result = run(jobs, "OAS", start_up=0.5, **files)
    # 5 copies of a, 3 of b: 0.5 x 8 + 40 / 3; the other one is short.
    spent = [job.end_time - job.start_time for job in result.jobs]
    assert spent == [pytest.approx(4 + 40 / 3), 2.0]


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ({"program": "q"}, "no file describes the pipeline 'q'"),
        ({}, "names no program"),
        ("p", "names no program"),
        ({"program": "p"}, "expected a value for the parameter 'x', found none"),
        ({"program": "p", "parameters": {"x": 1}, "profile": {"filters": {"a": {"bytes": 1, "seconds": 1}}}},
         "its profile: the profile has nothing of b"),
        ({"program": "p", "parameters": {"x": 1}, "times": {"AS": 0}}, "times that are no seconds above 0"),
    ],
)  # fmt: skip
def test_a_pipeline_that_nobody_can_size_is_refused_and_others_run(files, said, why):
    plugin = Pipelines(PipelineOptions.model_validate({**files}))

    class Asked:
        id = "1"

        def attribute(self, name):
            return said

    assert why in plugin.admit_job(Asked())
    result = run([pipeline_job(1, said), pipeline_job(2, None)], **files)
    assert [job.state for job in result.jobs] == ["refused", "completed"]


def test_without_a_profile_only_strategies_that_need_one_refuse(files):
    said = {"program": "p", "parameters": {"x": 1}}
    none = {"pipelines": files["pipelines"]}
    assert run([pipeline_job(1, said)], "OAS", **none).jobs[0].state == "refused"
    assert run([pipeline_job(1, said)], "BS", **none).jobs[0].state == "completed"


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"weights": [0, 0]}, "one of them above 0"),
        ({"strategy": "XS"}, "strategy"),
        ({"pipelines": ["nowhere.yaml"]}, "nowhere.yaml"),
        ({"store": "nowhere.json"}, "nowhere.json"),
    ],
)
def test_options_that_cannot_be(options, why):
    with pytest.raises((UserError, ValueError), match=why):
        run([pipeline_job(1, None)], **options)


# ---------------------------------------------------------------------- the execution model

MODEL = ExecutionModel(start_up=1, reading_start_up=4, receiving=0.5, crowding=0.2)
PROFILE = Profile({}, (1, 1, 1), (60, 30, 10), 80)


def spent(copies, filters, processors=8):
    return MODEL.seconds(Pipeline("p", filters), PROFILE, copies, processors)


def test_what_copies_cost():
    plain = tuple(map(Filter, "abc"))
    assert spent((1, 1, 1), plain) == 80
    assert spent((5, 2, 1), plain) == 8 + 15
    assert spent((8, 8, 8), plain) == 24 + 1.2 * 100 / 8
    # Data on two nodes: three of five readers idle, and starting one takes longer.
    assert spent((5, 2, 1), (Filter("a", data_nodes=2), *plain[1:])) == 20 + 3 + 30
    # c broadcasts to a, which spends half of its time on that: 1 + 0.5 x 4 times the work.
    assert spent((5, 2, 1), (*plain[:2], Filter("c", broadcast=True))) == 8 + 60 * 3 / 5
    # Four copies on two processors.
    assert spent((2, 1, 1), plain, 2) == 4 + 2 * 30
