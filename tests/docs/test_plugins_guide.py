"""Every example of docs/plugins is run, and does what the text says."""

from __future__ import annotations

import dataclasses
import inspect
import json
import re
import tomllib
from datetime import datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import msgspec
import numpy as np
import pytest
import structlog
import yaml
from structlog.testing import capture_logs

from headway import cli
from headway.config import parse_config
from headway.daemon.memory import saved_states
from headway.decisions import Reserve, Start
from headway.emulation import emulate
from headway.errors import UserError
from headway.events import ElasticCommandReceived, JobEnded, JobStarted, JobSubmitted, NodeDown, NodeUp
from headway.hookspecs import HookSpecs, Plugin, hookimpl
from headway.inquiry import explain
from headway.journal import Journal, RunInfo
from headway.model import ClusterDescription, JobDescription, NodeDescription, PoolDescription, Request
from headway.model.questions import Question
from headway.plugins import GROUP, PRESETS, Catalogue, PluginConfig, Plugins, Traits
from headway.plugins.hook_names import hooks_of
from headway.results import RunResult
from headway.scheduler import Scheduler, plain_clock
from headway.workload import TraceCommand, TraceJob, read_trace

PAGES = sorted((Path(__file__).parents[2] / "docs" / "plugins").glob("*.md"))
GUIDE = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
BLOCKS = re.findall(r"^```python\n# (\S+\.py)\n(.*?)^```$", GUIDE, re.MULTILINE | re.DOTALL)
#: Hook -> the files of its section.
SECTIONS = {
    hook: re.findall(r"^# (\S+\.py)$", body, re.MULTILINE)
    for page in PAGES
    for title, body in re.findall(
        r"^## (`.*?)\n(.*?)(?=^## |\Z)", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
    )
    for hook in re.findall(r"`(\w+)`", title)
}


@pytest.fixture
def file(tmp_path):
    """Writes an example into the test's directory."""

    def write(name: str) -> Path:
        path = tmp_path / name
        path.write_text(dict(BLOCKS)[name], encoding="utf-8")
        return path

    return write


def described(
    name: str, processors: int = 1, estimate: float = 100, submit: float = 0, **more: Any
) -> JobDescription:
    return JobDescription(name, submit, Request(processors, estimate), **more)


def traced(name: str, processors: int = 1, estimate: float = 100, submit: float = 0, **more: Any) -> TraceJob:
    return TraceJob(described(name, processors, estimate, submit, **more), estimate)


def submitted(
    name: str, processors: int = 1, estimate: float = 100, submit: float = 0, **more: Any
) -> JobSubmitted:
    return JobSubmitted(submit, described(name, processors, estimate, submit, **more))


def run(
    path: Path,
    *jobs: TraceJob,
    processors: int = 10,
    options: dict[str, Any] | None = None,
    epoch: float = 0.0,
) -> RunResult:
    """The jobs on a flat pool, under the plugin of a file and EASY; ``epoch``: the date of time 0."""
    catalogue = Catalogue([path])
    configs = [PluginConfig(path.stem, options)] if options else catalogue.enabled([])
    cluster = ClusterDescription.flat(processors)
    policies = [*configs, PluginConfig("easy")]
    return emulate(cluster, jobs, policies, catalogue, label=path.stem, keep_decisions=True, epoch=epoch)


def scheduler(path: Path, cluster: ClusterDescription, *, saved: dict[str, Any] | None = None) -> Scheduler:
    catalogue = Catalogue([path])
    plugins = Plugins.load(catalogue.enabled([PluginConfig("easy")]), catalogue, None)
    return Scheduler(cluster, plugins, saved=saved)


def starts(result: RunResult) -> dict[str, float | None]:
    return {job.job.id: job.start_time for job in result.jobs}


def ids(decisions) -> list[str]:
    return [decision.job_id for decision in decisions]


def equal_nodes(count: int, processors: int) -> ClusterDescription:
    nodes = tuple(NodeDescription(f"n{i}", processors, pools=("pool",)) for i in range(1, count + 1))
    return ClusterDescription("cluster", (PoolDescription("pool"),), nodes)


def swf(path: Path, *lines: tuple[int, int, int, int, int]) -> Path:
    """A trace of 10 processors; a line is (submit time, runtime, processors, estimate, user)."""
    rows = [
        f"{number} {submit} -1 {runtime} {size} -1 -1 {size} {estimate} -1 1 {user} -1 -1 -1 -1 -1 -1"
        for number, (submit, runtime, size, estimate, user) in enumerate(lines, 1)
    ]
    path.write_text("; MaxProcs: 10\n" + "\n".join(rows) + "\n")
    return path


# -------------------------------------------------------------------- the guide as a whole


def test_every_hook_has_an_example_in_the_order_of_the_catalogue_of_hooks():
    hooks = [name for name in vars(HookSpecs) if not name.startswith("_")]
    assert sorted(SECTIONS) == sorted(hooks)
    assert all(SECTIONS.values())


@pytest.mark.parametrize("hook", SECTIONS)
def test_the_example_of_a_hook_implements_it(hook, file):
    (name,) = SECTIONS[hook]
    catalogue = Catalogue([file(name)])
    assert hook in hooks_of(catalogue.get(Path(name).stem))


@pytest.mark.parametrize("hook", SECTIONS)
def test_the_section_of_a_hook_has_its_signature(hook):
    asked = inspect.signature(getattr(HookSpecs, hook))
    asked = asked.replace(parameters=list(asked.parameters.values())[1:])
    assert f"\n\n`{hook}{str(asked).replace(chr(39), '')}`\n" in GUIDE


def test_the_table_of_pages_names_the_hooks_of_each_page():
    rows = dict(re.findall(r"^\| \[.*?\]\((hooks_\w+\.md)\) \| (.*) \|$", GUIDE, re.MULTILINE))
    hooks = {page.name: set(re.findall(r"`(\w+)`", page.read_text(encoding="utf-8"))) for page in PAGES}
    assert sorted(rows) == [page.name for page in PAGES if page.name.startswith("hooks_")]
    for page, named in rows.items():
        assert set(re.findall(r"`(\w+)`", named)) <= hooks[page] & set(SECTIONS)


def test_every_block_of_python_is_a_file_with_a_name_of_its_own():
    assert len(BLOCKS) == GUIDE.count("```python\n")
    assert len(dict(BLOCKS)) == len(BLOCKS)


@pytest.mark.parametrize("name", [name for name, _ in BLOCKS if not name.startswith("test_")])
def test_an_example_can_be_looked_at_with_headway_plugins(name, file, capsys):
    cli.main(["plugins", Path(name).stem, "--plugin", str(file(name))])
    assert "hooks: " in capsys.readouterr().out


# -------------------------------------------------------------------- factors


def test_a_factor_of_a_plugin_can_be_weighed(file):
    catalogue = Catalogue([file("paid.py")])
    configs = [PluginConfig("multifactor", {"weights": {"paid": 1}}), PluginConfig("easy")]
    s = Scheduler(ClusterDescription.flat(1), Plugins.load(catalogue.enabled(configs), catalogue, None))
    s.step(0, [submitted("runs")])
    s.step(1, [submitted("a", group="art"), submitted("b", group="physics")])
    assert s.problems == []
    assert [job.id for job in s.state.domains["pool"].queue] == ["b", "a"]


# -------------------------------------------------------------------- the first policy


def month(days: int) -> list[TraceJob]:
    model = Catalogue().get("month")().register_workloads()["month"]
    return model.generate(np.random.default_rng(1), model.Options(processors=320, days=days)).jobs


@pytest.mark.parametrize(("depth", "policy"), [(1, "easy"), (10**6, "conservative")])
def test_the_first_policy_is_easy_at_depth_1_and_conservative_at_any_depth(depth, policy, file):
    catalogue = Catalogue([file("depth.py")])
    cluster, jobs = ClusterDescription.flat(320), month(days=4)
    ours, shipped = (
        emulate(cluster, jobs, [config], catalogue, label="")
        for config in (PluginConfig("depth", {"depth": depth}), PluginConfig(policy))
    )
    assert starts(ours) == starts(shipped)
    assert sum(j.start_time > j.job.submit_time for j in ours.jobs) > 100


def test_the_first_policy_is_at_most_thirty_lines():
    assert len(dict(BLOCKS)["depth.py"].strip().splitlines()) <= 30


def test_the_first_policy_runs_unchanged_on_nodes(file):
    catalogue = Catalogue([file("depth.py")])
    jobs = [traced("a", 6), traced("b", 8, 10), traced("c", 2, 100)]
    result = emulate(equal_nodes(2, 4), jobs, catalogue.enabled([]), catalogue, label="depth")
    assert starts(result) == {"a": 0, "b": 100, "c": 0}
    assert result.jobs[0].placement == (("n1", 4), ("n2", 2))


def test_the_first_commands_of_the_guide_run(file, tmp_path, capsys):
    trace = swf(tmp_path / "trace.swf", (0, 10, 6, 100, 1), (1, 10, 8, 100, 1), (2, 10, 4, 50, 2))
    plugin = file("depth.py")
    cli.main(["dry-run", "--plugin", str(plugin), "--trace", str(trace), "--out", str(tmp_path / "out")])
    assert capsys.readouterr().out.startswith("depth: 3 jobs (3 completed)")
    assert (tmp_path / "out" / "jobs.csv").is_file()
    cli.main(["plugins", "depth", "--plugin", str(plugin)])
    assert "jobs for which capacity is kept" in capsys.readouterr().out


def test_a_plugin_file_takes_its_options_from_the_configuration(file):
    (example,) = re.findall(r"```yaml\n(.*?)```", GUIDE, re.DOTALL)
    assert yaml.safe_load(example)["plugins"][0] == {"depth": {"depth": 3}}
    catalogue = Catalogue([file("depth.py")])
    configs = catalogue.enabled(parse_config(example).plugin_configs())
    assert [config.name for config in configs] == ["depth", "first-fit"]
    assert Plugins.load(configs, catalogue, None).by_name["depth"].options.depth == 3


def test_the_guides_own_test_passes(file):
    file("depth.py")
    namespace: dict[str, Any] = {"__file__": str(file("test_depth.py")), "__name__": "test_depth"}
    exec(compile(dict(BLOCKS)["test_depth.py"], "test_depth.py", "exec"), namespace)
    (cases,) = (mark for mark in namespace["test_what_starts_on_ten_processors"].pytestmark)
    for case in cases.args[1]:
        namespace["test_what_starts_on_ten_processors"](*case)
    namespace["test_a_whole_run"]()


# -------------------------------------------------------------------- the hooks, one by one


def test_startup_limits_jobs_to_a_share_of_the_pool(file):
    result = run(file("share.py"), traced("half", 5), traced("more", 6))
    assert starts(result) == {"half": 0, "more": None}
    assert starts(run(file("share.py"), traced("more", 6), options={"share": 0.6})) == {"more": 0}


def test_checkpoint_and_restore_keep_whose_turn_it_is_over_a_restart(file):
    path, cluster = file("turns.py"), ClusterDescription.flat(1)
    first = scheduler(path, cluster)
    assert ids(first.step(0, [submitted("1", user="alice")])) == ["1"]
    saved = json.loads(json.dumps(first.checkpoint()))
    assert saved == {"turns": {"alice": 1}}

    events = [submitted("2", user="alice"), submitted("3", user="bob")]
    assert ids(scheduler(path, cluster, saved=saved).step(0, events)) == ["3"]
    assert ids(scheduler(path, cluster).step(0, events)) == ["2"]


def test_the_end_of_a_run_writes_the_checkpoint_to_the_journal(file, tmp_path):
    catalogue = Catalogue([file("turns.py")])
    with Journal.open(tmp_path / "journal.db") as journal:
        emulate(
            ClusterDescription.flat(1),
            [traced("1", user="alice")],
            catalogue.enabled([PluginConfig("easy")]),
            catalogue,
            label="turns",
            journal=journal,
        )
        last = journal.last_run()
        assert last is not None
        kept = journal.last_checkpoint(last.id)
    assert kept is not None
    assert kept.states == {"turns": {"alice": 1}}


def test_a_run_that_was_killed_early_hands_on_what_it_began_with(tmp_path):
    info = RunInfo("drive", 0.0, "1", "", 0, ClusterDescription.flat(1), {"turns": {"alice": 7}})
    with Journal.open(tmp_path / "journal.db") as journal:
        journal.begin_run(info)
        journal.record_events(1, 0.0, [])
        assert saved_states(journal, structlog.get_logger()) == {"turns": {"alice": 7}}
        journal.checkpoint(1, {"turns": {"alice": 8}})
        assert saved_states(journal, structlog.get_logger()) == {"turns": {"alice": 8}}


def test_shutdown_says_what_was_left(file):
    with capture_logs() as logs:
        run(file("farewell.py"), traced("fits"), traced("too wide", 11))
    assert {"event": "left behind", "jobs": 1, "log_level": "info"} in logs


def test_observe_learns_which_nodes_fail(file):
    cluster = equal_nodes(2, 4)
    wary = scheduler(file("wary.py"), cluster)
    wary.step(0, [NodeDown(0, "n1")])
    (start,) = wary.step(1, [NodeUp(1, cluster.nodes[0]), submitted("a", 4, submit=1)])
    assert start.placement == (("n2", 4),)


def test_predict_runtime_lets_a_job_backfill_that_its_estimate_would_not(file):
    history = [traced(f"old{i}", 1, 10, submit=i * 10, user="alice") for i in range(2)]
    now = [
        traced("running", 6, 100, submit=50),
        traced("head", 8, 100, submit=51),
        TraceJob(described("short", 4, 200, 52, user="alice"), 10),
    ]
    assert starts(run(file("last_two.py"), *history, *now))["short"] == 52
    without = emulate(
        ClusterDescription.flat(10), [*history, *now], [PluginConfig("easy")], Catalogue(), label="easy"
    )
    assert starts(without)["short"] > 52


def test_admit_job_refuses_and_explain_says_why(file):
    result = run(file("members.py"), traced("hers", user="alice"), traced("his", user="bob"))
    assert starts(result) == {"hers": 0, "his": None}
    members = scheduler(file("members.py"), ClusterDescription.flat(10))
    members.step(0, [submitted("his", user="bob")])
    assert explain(members, "his", plain_clock)[-1] == "It cannot start: refused: user 'bob' is not a member."


def test_bar_job_keeps_a_job_out_of_the_queue_and_explain_says_why(file):
    jobs = [traced("a", 4, user="x"), traced("b", 4, user="x"), traced("c", 4, user="y")]
    result = run(file("alone.py"), *jobs)
    assert starts(result) == {"a": 0, "b": 100, "c": 0}
    ours = scheduler(file("alone.py"), ClusterDescription.flat(10))
    ours.step(0, [submitted("a", user="x"), submitted("b", user="x")])
    assert explain(ours, "b", plain_clock)[-1] == "It cannot start: another job of user 'x' runs."


def test_bar_jobs_answers_about_many_at_once(file):
    ours = scheduler(file("closed.py"), ClusterDescription.flat(10))
    ours.step(0, [submitted(name, user="eve" if name in "ab" else "ann") for name in "abc"])
    assert {job.id for job in ours.state.jobs.values() if job.barrier is not None} == {"a", "b"}
    assert explain(ours, "a", plain_clock)[-1] == "It cannot start: the project of user 'eve' is over."


def test_inform_answers_a_question_about_what_the_user_may_see(file):
    ours = scheduler(file("how_many.py"), ClusterDescription.flat(1))
    ours.step(
        0, [submitted(name, user=user) for name, user in zip("abc", ("ann", "ann", "bob"), strict=True)]
    )
    (pool,) = ours.state.pools
    # The first job has started.
    for user, sees_all, found in (("ann", False, 1), ("bob", False, 1), ("root", True, 2)):
        answer = ours.inform.first(Question("how-many", pool, user, sees_all), ours.state)
        assert json.loads(msgspec.json.encode(answer)) == {"jobs": found}
    with pytest.raises(UserError, match=f"expected one of the pools {pool}; found 'x'"):
        ours.inform.first(Question("how-many", "x", "ann"), ours.state)
    assert ours.inform.first(Question("else", pool, "ann"), ours.state) is None


def test_promised_counts_what_must_be_saved_at_once(file):
    ours = scheduler(file("told.py"), ClusterDescription.flat(10))
    ours.step(5, [submitted("a", submit=5)])
    assert ours.newly_promised() == ["told"]
    assert ours.newly_promised() == []
    assert ours.checkpoint(["told"]) == {"told": {"a": 86405.0}}


def test_explain_says_what_the_policy_left_out(file):
    path = file("two_at_most.py")
    plugins = Plugins.load(Catalogue([path]).enabled([]), Catalogue([path]), None)
    ours = Scheduler(ClusterDescription.flat(1), plugins)
    ours.step(0, [submitted(name) for name in "abcd"])
    assert "Only the first two jobs of the queue are looked at." in explain(ours, "d", plain_clock)


def test_the_example_of_traits_starts_the_widest_that_fits(file):
    path = file("patient.py")
    jobs = [traced("a", 4), traced("b", 8, 100, 1), traced("c", 6, 100, 1)]
    found = emulate(
        ClusterDescription.flat(10), jobs, [PluginConfig("patient")], Catalogue([path]), label="patient"
    )
    assert starts(found) == {"a": 0, "c": 1, "b": 101}


def test_every_field_of_the_traits_is_in_the_table_with_its_default():
    page = next(page for page in PAGES if page.name == "traits.md").read_text(encoding="utf-8")
    assert re.findall(r"^\| `(\w+)` \| (?:`[^`]+`|none|all) \| ", page, re.MULTILINE) == [
        field.name for field in dataclasses.fields(Traits)
    ]


def test_queue_key_serves_the_shortest_first(file):
    result = run(file("shortest.py"), traced("a", 10), traced("long", 10, 300), traced("short", 10, 20))
    assert starts(result) == {"short": 0, "a": 20, "long": 120}


@pytest.mark.parametrize(
    ("most", "end", "state", "follower"),
    [(86400.0, 150, "completed", 150), (149.0, 100, "completed", 100)],
)
def test_react_grants_more_time_which_the_policy_reckons_with(most, end, state, follower, file):
    catalogue = Catalogue([file("extend.py")])
    jobs = [TraceJob(described("a", 10, 100), 100), traced("b", 10, 10), traced("c", 1, 45)]
    result = emulate(
        ClusterDescription.flat(10),
        jobs,
        [PluginConfig("extend", {"most": most}), PluginConfig("easy")],
        catalogue,
        label="extend",
        commands=[TraceCommand(60, "a", "ET", 50)],
    )
    assert (result.jobs[0].end_time, result.jobs[0].state) == (end, state)
    assert starts(result)["b"] == follower


def test_react_changes_what_the_policy_sees_in_the_same_step(file):
    ours = scheduler(file("extend.py"), ClusterDescription.flat(10))
    ours.step(0, [submitted("a", 9), submitted("head", 10)])
    ours.step(1, [JobStarted(0, "a")])
    events = [ElasticCommandReceived(2, "a", "ET", 50), submitted("backfilled", 1, 148, 2)]
    assert ids(ours.step(2, events)) == ["a", "backfilled"]


def test_prepare_keeps_an_appointment_that_easy_alone_would_miss(file):
    jobs = [traced("long", 1, 200), traced("meeting", 10, 50, begin_time=100), traced("short", 1, 100)]
    assert starts(run(file("appointments.py"), *jobs)) == {"long": 150, "meeting": 100, "short": 0}
    alone = emulate(ClusterDescription.flat(10), jobs, [PluginConfig("easy")], Catalogue(), label="easy")
    assert starts(alone) == {"long": 0, "meeting": 200, "short": 0}


@pytest.mark.parametrize("policy", ["easy", "k-reserved", "conservative", "los", "depth"])
def test_who_has_an_appointment_starts_then_though_a_job_before_it_is_booked_for_later(file, policy):
    jobs = [traced("a", 4, 100), traced("first", 7, 50, 1), traced("meeting", 3, 300, 2, begin_time=50)]
    files = [file("appointments.py"), *([file("depth.py")] if policy == "depth" else [])]
    configs = [PluginConfig("appointments"), PluginConfig(policy)]
    found = emulate(ClusterDescription.flat(10), jobs, configs, Catalogue(files), label=policy)
    assert starts(found) == {"a": 0, "meeting": 50, "first": 100}


def test_order_queue_serves_the_highest_response_ratio(file):
    jobs = [
        traced("a", 10, 100),
        traced("long", 10, 50, 1),
        traced("short", 10, 10, 2),
        traced("late", 10, 10, 99),
    ]
    assert starts(run(file("response_ratio.py"), *jobs)) == {"a": 0, "short": 100, "long": 110, "late": 160}


def seconds(*date: int) -> float:
    """A date of Berlin, in seconds since 1970."""
    return datetime(*date, tzinfo=ZoneInfo("Europe/Berlin")).timestamp()


#: The date of a run's time 0: of a live cluster, and of a log that begins in winter or in summer.
EPOCHS = [0.0, seconds(2026, 1, 1, 13, 10), seconds(2026, 6, 30, 13, 10)]


@pytest.mark.parametrize("epoch", EPOCHS)
def test_schedule_at_night_is_the_widest_first_and_by_day_the_next_policys(file, epoch):
    def waits(hour: int) -> dict[str, float]:
        at = seconds(2026, 7, 1, hour) - epoch
        found = starts(run(file("night.py"), traced("a", 2, 10, at), traced("b", 9, 10, at), epoch=epoch))
        return {name: start - at for name, start in found.items()}

    assert waits(22) == waits(5) == {"a": 10, "b": 0}
    assert waits(21) == waits(6) == {"a": 0, "b": 10}


def test_place_spreads_jobs(file):
    worst = scheduler(file("worst_fit.py"), equal_nodes(2, 4))
    decisions = worst.step(0, [submitted("a", 1), submitted("b", 1)])
    assert [d.placement for d in decisions] == [(("n1", 1),), (("n2", 1),)]


def test_control_reserves_a_maintenance_window(file):
    result = run(
        file("maintenance.py"),
        traced("before", 1, 100), traced("ends in it", 1, 1000, 10), traced("ends before it", 1, 990, 10),
    )  # fmt: skip
    assert starts(result) == {"before": 0, "ends in it": 2000, "ends before it": 10}
    (reserve,) = (record for record in result.decisions if isinstance(record.decision, Reserve))
    assert reserve.accepted


def test_needs_refuses_a_cluster_that_cannot(file):
    catalogue = Catalogue([file("maintenance.py")])
    with pytest.raises(UserError, match=r"plugin 'maintenance' needs Reserve, .* \(it can: Start\)"):
        Plugins.load(catalogue.enabled([]), catalogue, frozenset({Start}))


def test_revise_lets_two_starts_a_step_through(file):
    result = run(file("gentle.py"), *(traced(str(i)) for i in range(5)))
    assert sorted(starts(result).values()) == [0, 0, 1, 1, 2]


@pytest.mark.parametrize("epoch", EPOCHS)
def test_veto_keeps_long_jobs_from_starting_on_a_friday(file, epoch):
    # 3 July 2026 is a Friday.
    friday, saturday = seconds(2026, 7, 3) - epoch, seconds(2026, 7, 4) - epoch
    jobs = [
        traced("before", 1, 3601, friday - 1),
        traced("long", 1, 3601, friday),
        traced("short", 1, 3600, friday + 1),
    ]
    found = starts(run(file("no_friday.py"), *jobs, epoch=epoch))
    assert found == {"before": friday - 1, "long": saturday, "short": friday + 1}


def test_explain_gives_the_reason_of_a_veto(file):
    friday = seconds(2026, 7, 3)
    vetoing = scheduler(file("no_friday.py"), ClusterDescription.flat(10))
    assert vetoing.step(friday, [submitted("long", 1, 3601, friday)]) == []
    (line,) = explain(vetoing, "long", plain_clock)[2:]
    assert "a plugin vetoes that: no job of more than an hour is started on a Friday" in line


def test_decided_logs_starts_with_their_wait(file):
    with capture_logs() as logs:
        run(file("tell.py"), traced("a", 10, 70), traced("b", 10))
    assert [(entry["job"], entry["waited"]) for entry in logs if entry["event"] == "starts"] == [
        ("a", 0),
        ("b", 70),
    ]


def test_answer_tells_the_user_a_refusal_once(file):
    ours = scheduler(file("unshortened.py"), ClusterDescription.flat(10))
    ours.step(0, [submitted("a"), ElasticCommandReceived(0, "a", "RT", 50, "alice", request="r1")])
    answer = ours.answer("r1")
    assert answer is not None and (answer.outcome, answer.reason) == (
        "refused",
        "jobs are not shortened here",
    )
    assert ours.answer("r1") is None and ours.answer("other") is None


def test_register_commands_adds_a_command_from_a_file(file, tmp_path, capsys):
    trace = swf(tmp_path / "trace.swf", (0, 10, 6, 100, 1), (1, 10, 8, 100, 1))
    cli.main(["--plugin", str(file("widest.py")), "widest", str(trace)])
    assert capsys.readouterr().out == "8\n"


def test_register_workloads_gives_a_model_whose_jobs_can_be_run(file):
    path = file("poisson.py")
    model = Catalogue([path]).get("poisson")().register_workloads()["poisson"]
    jobs = model.generate(np.random.default_rng(1), model.Options(jobs=20)).jobs
    assert jobs == model.generate(np.random.default_rng(1), model.Options(jobs=20)).jobs
    assert [job.state for job in run(path, *jobs).jobs] == ["completed"] * 20


def test_register_workloads_gives_a_model_for_headway_generate(file, tmp_path, monkeypatch):
    path = file("poisson.py")
    monkeypatch.chdir(tmp_path)
    cli.main(["generate", "poisson", "--plugin", str(path), "--set", "jobs=20"])
    assert len(read_trace(tmp_path / "poisson.swf", strict=True)) == 20


def test_register_estimates_gives_a_model_for_headway_convert(file, tmp_path, capsys):
    trace = swf(tmp_path / "trace.swf", (0, 10, 6, 100, 1), (1, 4000, 8, 9000, 1), (2, 4000, 8, 100, 1))
    arguments = ["--estimates", "hours", "--estimates-set", "spare=1", "--plugin", str(file("hours.py"))]
    cli.main(["convert", str(trace), str(tmp_path / "new.swf"), *arguments])
    said = capsys.readouterr().out
    assert "1 runtimes were beyond the job's own estimate" in said
    assert "estimates in whole hours" in said
    records = read_trace(tmp_path / "new.swf", strict=True).records
    assert records[:, 3].tolist() == [10, 4000, 100]
    assert records[:, 8].tolist() == [7200, 10800, 7200]


def test_register_metrics_and_report_sections_reach_the_outputs(file, tmp_path, capsys):
    trace = swf(
        tmp_path / "trace.swf", (0, 10, 6, 100, 1), (1, 10, 8, 100, 1), (2, 10, 4, 5, 7), (3, 9, 4, 9, 7)
    )
    arguments = ["dry-run", "--trace", str(trace), "--out", str(tmp_path)]
    for name in ("at_once.py", "users.py"):
        arguments += ["--plugin", str(file(name))]
    cli.main(arguments)
    assert json.loads((tmp_path / "metrics.json").read_text())["extra"] == {"started_at_once": 0.5}
    assert "started_at_once" in capsys.readouterr().out
    page = (tmp_path / "report.html").read_text()
    assert "Jobs by user" in page
    assert "<tr><td>7</td><td>2</td></tr>" in page


def test_register_job_columns_adds_a_column(file, tmp_path):
    trace = swf(tmp_path / "trace.swf", (0, 10, 6, 100, 1), (1, 10, 8, 100, 1))
    cli.main(["dry-run", "--trace", str(trace), "--out", str(tmp_path), "--plugin", str(file("early.py"))])
    lines = (tmp_path / "jobs.csv").read_text().splitlines()
    assert lines[0].endswith(",early")
    assert [line.rsplit(",", 1)[1] for line in lines[1:]] == ["90", "90"]


def test_register_physics_slows_jobs_down(file):
    jobs = [TraceJob(described("a", estimate=1000), 100), TraceJob(described("b", estimate=110), 100)]
    result = run(file("slow_clock.py"), *jobs)
    assert [(job.end_time, job.state) for job in result.jobs] == [(125, "completed"), (110, "timed out")]
    assert {record.decision.frequency for record in result.decisions} == {2.0e9}


# -------------------------------------------------------------------- the chapters after the hooks


def test_a_wrong_option_gives_the_message_of_the_guide(file, tmp_path, capsys):
    config = tmp_path / "site.yaml"
    config.write_text("plugins: [{depth: {depth: -1}}]\n")
    trace = swf(tmp_path / "trace.swf", (0, 10, 6, 100, 1))
    with pytest.raises(SystemExit) as ended:
        cli.main(["dry-run", "-c", str(config), "--trace", str(trace), "--plugin", str(file("depth.py"))])
    assert ended.value.code == 2
    said = capsys.readouterr().err.strip().replace(str(config), "site.yaml")
    assert f"\n{said}\n" in GUIDE


def test_the_entry_point_of_the_guide_is_in_the_group_that_headway_reads():
    plugin, preset = re.findall(r"```toml\n(.*?)```", GUIDE, re.DOTALL)
    assert tomllib.loads(plugin)["project"]["entry-points"] == {GROUP: {"depth": "headway_depth:Depth"}}
    assert tomllib.loads(preset)["project"]["entry-points"] == {PRESETS: {"deep": "headway_depth:DEEP"}}


class _Failing(Plugin):
    """Fails in the hooks that are named."""

    def __init__(self, **answers: Any) -> None:
        self.answers = answers

    def _answer(self, hook: str, default: Any = None) -> Any:
        answer = self.answers.get(hook, default)
        if isinstance(answer, Exception):
            raise answer
        return answer

    @hookimpl
    def queue_key(self) -> Any:
        return self._answer("queue_key")

    @hookimpl
    def schedule(self, view) -> Any:
        if "schedule" in self.answers:
            view.start(view.queue[0])
        return self._answer("schedule")

    @hookimpl
    def control(self) -> Any:
        return self._answer("control")

    @hookimpl
    def revise(self) -> Any:
        return self._answer("revise")


def failing(**answers: Any) -> Scheduler:
    plugins = Plugins()
    plugins.add("failing", _Failing(**answers))
    plugins.add("easy", Catalogue().get("easy")())
    return Scheduler(ClusterDescription.flat(10), plugins)


NONSENSE = [
    ("queue_key", ValueError("broken"), ["a"]),
    ("queue_key", 5.0, ["a"]),
    ("control", ValueError("broken"), ["a"]),
    ("control", 5, ["a"]),
    ("control", ["a"], ["a"]),
    ("revise", ValueError("broken"), ["a"]),
    ("revise", ["a"], ["a"]),
    ("schedule", ValueError("broken"), []),
    ("schedule", ["a"], []),
]


@pytest.mark.parametrize(("hook", "answer", "started"), NONSENSE)
def test_a_plugin_that_fails_is_named_and_its_answer_left_out(hook, answer, started):
    ours = failing(**{hook: answer})
    assert ids(ours.step(0, [submitted("a")])) == started
    assert {(p.plugin, p.hook, bool(p.traceback)) for p in ours.problems} == {("failing", hook, True)}
    assert ours.state.domains["pool"].free == 10 - len(started)


def test_a_policy_that_failed_leaves_the_next_cycle_intact():
    ours = failing(schedule=ValueError("broken"))
    ours.step(0, [submitted("a")])
    del ours.plugins.by_name["failing"].answers["schedule"]
    assert ids(ours.step(1, [submitted("b", submit=1)])) == ["a", "b"]


@pytest.mark.parametrize(
    ("start", "said"),
    [
        (Start("a"), "job a is starting, not pending"),
        (Start("wide"), "job wide needs 10 processors, 9 are free"),
        (Start("ghost"), "job ghost is not known"),
    ],
)
def test_the_guard_refuses_starts_of_control(start, said):
    ours = failing(control=[start])
    decisions = ours.step(0, [submitted("a"), submitted("wide", 10)])
    assert ids(decisions) == ["a"]
    assert [problem.message for problem in ours.problems] == [f"{said}; not started"]


def test_a_start_of_control_takes_its_processors():
    ours = failing(schedule=[], control=[Start("b")])
    assert ids(ours.step(0, [submitted("a", 6), submitted("b", 6)])) == ["b"]
    assert ours.state.domains["pool"].free == 4
    assert [job.id for job in ours.state.domains["pool"].queue] == ["a"]
    ours.step(0, [JobStarted(0, "b")])
    ours.step(9, [JobEnded(9, "b")])
    assert ours.state.domains["pool"].free == 10


REFUSED = {
    "no hook": (
        "    @hookimpl\n    def shedule(self): ...\n",
        "'shedule', which is no hook. Did you mean 'schedule'",
    ),
    "no argument": ("    @hookimpl\n    def observe(self, evnt): ...\n", "evnt"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_plugin_that_cannot_work_is_refused(case, tmp_path):
    body, said = REFUSED[case]
    path = tmp_path / "bad.py"
    path.write_text(
        "from headway.hookspecs import hookimpl\nclass Bad:\n    @hookimpl\n    def shutdown(self): ...\n"
        + body
    )
    with pytest.raises(UserError, match=said):
        Catalogue([path])


def test_seconds_are_counted_for_each_plugin(file):
    ours = scheduler(file("tell.py"), ClusterDescription.flat(10))
    with capture_logs():
        ours.step(0, [submitted("a")])
    assert ours.seconds["tell"] > 0 < ours.seconds["easy"]


@pytest.mark.parametrize("policy", [[], ["--policy", "depth"], ["--policy", "easy"]])
def test_a_run_with_a_plugin_file_is_replayed_without_difference(policy, file, tmp_path, capsys):
    lines = [(i, 7 + i % 5, 1 + i * 7 % 10, 20, 1) for i in range(40)]
    trace, plugin = swf(tmp_path / "trace.swf", *lines), str(file("depth.py"))
    journal = str(tmp_path / "journal.db")
    structlog.reset_defaults()
    cli.main(["dry-run", "--trace", str(trace), "--plugin", plugin, "--journal", journal, *policy])
    # Ends with exit code 1, which raises SystemExit, if a decision differs.
    cli.main(["replay", journal, "--plugin", plugin])
    assert "40 decisions" in capsys.readouterr().out


def test_arrival_chance_is_what_others_ask_for(file):
    s = scheduler(file("on_the_hour.py"), equal_nodes(1, 4))
    s.step(3000.0, [])
    assert s.state.arrival_chance("pool", 300.0) == 0.1
    assert s.state.arrival_chance("pool", 600.0) == 1.0
    # The run's time 0 is twenty to the hour.
    s.state.epoch = 2400.0
    assert s.state.arrival_chance("pool", 600.0) == 0.1
