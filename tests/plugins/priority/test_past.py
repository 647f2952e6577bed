"""What was used before the first start, from a batch system's accounting."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pydantic
import pytest
from building import described

from headway import events as ev
from headway.model import ClusterDescription
from headway.plugins import Plugins
from headway.scheduler import Scheduler
from headway_plugins.policies.easy import Easy
from headway_plugins.priority.classic import Classic, ClassicOptions
from headway_plugins.priority.fair_share import FairShare
from headway_plugins.priority.fair_tree import FairTree, FairTreeOptions
from headway_plugins.priority.windows import Windows, WindowsOptions

PBS = """11/20/2026 10:00:00;E;7.server;user=ann group=staff account="x" queue=workq start=100 end=140 \
Exit_status=0 Resource_List.ncpus=16
11/20/2026 10:00:01;E;8.server;user=bob group=x queue=workq start=200 end=207 Exit_status=271 \
Resource_List.ncpus=2
"""
SACCT = """JobIDRaw|User|Account|QOS|NCPUS|ElapsedRaw|Start|End|State
12|ann|x|high|32|80|100|180|COMPLETED
13|bob|x||1|0|Unknown|180|CANCELLED
"""
#: Its first job is of alice: 2 s on a processor.
LSB = Path(__file__).parents[2] / "framework/workload/fixtures/lsb.acct"
ENDED = 1795420282.0


def options(tmp_path, text, kind=FairTreeOptions, **more):
    path = tmp_path / "history"
    path.write_text(text)
    return kind(history=path, **({"half_life": None} if kind is FairTreeOptions else {}), **more)


def scheduler(plugin: FairShare, saved=None, epoch=0.0) -> Scheduler:
    plugins = Plugins()
    plugins.add("easy", Easy())
    plugins.add("fair-tree", plugin)
    return Scheduler(ClusterDescription.flat(8), plugins, saved=saved, epoch=epoch)


def begun(tmp_path, text, now=1000.0, kind=FairTree, events=(), epoch=0.0, **more):
    """The plugin after its first step."""
    plugin = kind(options(tmp_path, text, **more))
    s = scheduler(plugin, epoch=epoch)
    s.step(now, [ev.JobSubmitted(now, described("new", 9, user="ann", account="x")), *events])
    assert s.problems == []
    return plugin


def used(plugin, now, account, user):
    return plugin.standing(now).usage[plugin.tree.association(account, user)]


def test_jobs_of_a_pbs_log_are_billed_to_their_accounts_or_groups(tmp_path):
    plugin = begun(tmp_path, PBS, accounts={"x": {"users": ["ann", "bob"]}}, billing={"processors": 2})
    assert used(plugin, 1000, "x", "ann") == 2 * 16 * 40
    assert used(plugin, 1000, "x", "bob") == 2 * 2 * 7


def test_jobs_of_sacct_are_billed_with_their_qos(tmp_path):
    plugin = begun(tmp_path, SACCT, qos={"high": 3})
    assert used(plugin, 1000, "x", "ann") == 3 * 32 * 80


def test_jobs_of_lsb_acct_are_billed_to_their_projects(tmp_path):
    first = next(line for line in LSB.read_text().splitlines() if line.startswith('"JOB_FINISH"'))
    plugin = begun(tmp_path, first + "\n", now=ENDED + 100)
    assert used(plugin, ENDED + 100, "scopred:app=ft;N=3", "alice") == 2


def test_it_decays_from_when_it_was_used(tmp_path):
    plugin = Classic(options(tmp_path, PBS, ClassicOptions, half_life=500.0))
    s = scheduler(plugin)
    s.step(1140.0, [ev.JobSubmitted(1140, described("new", 9))])
    scale = np.log(2) / 500
    assert used(plugin, 1140, "x", "ann") == pytest.approx(16 / scale * (0.25 - 2 ** (-1040 / 500)))


def test_windows_count_it_where_it_was_used(tmp_path):
    path = tmp_path / "history"
    path.write_text(PBS)
    plugin = Windows(WindowsOptions(history=path, interval=100.0, depth=3, decay=0.5))
    s = scheduler(plugin)
    s.step(310.0, [ev.JobSubmitted(310, described("new", 9))])
    assert used(plugin, 310, "x", "ann") == 0.25 * 640
    assert used(plugin, 310, "x", "bob") == 0.5 * 14


def test_what_the_cluster_still_tells_of_counts_once(tmp_path):
    over = [
        ev.JobSubmitted(90, described("7.server", 16, user="ann", account="x")),
        ev.JobStarted(100, "7.server"),
        ev.JobEnded(140, "7.server"),
    ]
    plugin = begun(tmp_path, PBS, events=over)
    assert used(plugin, 1000, "x", "ann") == 640


def test_a_later_job_with_the_same_number_counts(tmp_path):
    later = [
        ev.JobSubmitted(500, described("7.server", 1, user="ann", account="x")),
        ev.JobStarted(500, "7.server"),
    ]
    plugin = begun(tmp_path, PBS, events=later)
    assert used(plugin, 1000, "x", "ann") == 640 + 500


def test_what_comes_after_the_beginning_does_not_count_yet(tmp_path):
    plugin = begun(tmp_path, PBS, now=120.0)
    assert used(plugin, 120, "x", "ann") == 16 * 20


def test_times_are_of_the_clock_of_the_world(tmp_path):
    plugin = begun(tmp_path, PBS, now=30.0, epoch=100.0)
    assert used(plugin, 30, "x", "ann") == 16 * 30


def test_what_a_reset_forgets_does_not_count(tmp_path):
    plugin = begun(tmp_path, PBS, now=86400.0 + 10, reset="daily")
    assert used(plugin, 86410, "x", "ann") == 0


def test_it_is_counted_at_the_first_start_alone(tmp_path):
    plugin = FairTree(options(tmp_path, PBS))
    s = scheduler(plugin)
    s.step(1000.0, [ev.JobSubmitted(1000, described("new", 9))])
    saved = json.loads(json.dumps(s.checkpoint()))
    again = FairTree(options(tmp_path, PBS))
    s = scheduler(again, saved)
    s.step(2000.0, [ev.JobSubmitted(2000, described("new", 9))])
    assert used(again, 2000, "x", "ann") == 640


def test_what_it_said_is_kept_when_the_option_is_taken_out(tmp_path):
    s = scheduler(FairTree(options(tmp_path, PBS)))
    s.step(1000.0, [ev.JobSubmitted(1000, described("new", 9))])
    again = FairTree(FairTreeOptions(half_life=None))
    scheduler(again, json.loads(json.dumps(s.checkpoint()))).step(2000.0, [ev.Tick(2000)])
    assert used(again, 2000, "x", "ann") == 640


def test_it_is_told(tmp_path):
    plugin = FairTree(options(tmp_path, PBS, billing={"processors": 1, "gpu": 5}))
    s = scheduler(plugin)
    s.step(1000.0, [ev.JobSubmitted(1000, described("new", 9))])
    assert (
        f"usage of 2 jobs before the first start is that of {tmp_path / 'history'}: 654 units x seconds; "
        "their gpu is not known and not counted"
    ) in s.notices


@pytest.mark.parametrize(
    ("text", "more", "said"),
    [
        ("no accounting\n", {}, "expected a batch system's accounting, such as sacct -P"),
        (
            SACCT.replace("|100|", "|1970-01-01T00:01:40|"),
            {},
            "line 2: Start: expected seconds since 1970, as SLURM_TIME_FORMAT=%s has sacct write them, found "
            "'1970-01-01T00:01:40'",
        ),
        (PBS, {"accounts": "from-slurm"}, "no history beside accounts: from-slurm"),
    ],
)
def test_what_is_wrong_is_named(tmp_path, text, more, said):
    with pytest.raises(pydantic.ValidationError, match=said):
        options(tmp_path, text, **more)


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(pydantic.ValidationError, match=r"history: .*nowhere cannot be read"):
        FairTreeOptions(history=tmp_path / "nowhere")


def test_with_a_damaged_checkpoint_the_history_counts_again(tmp_path):
    plugin = FairTree(options(tmp_path, PBS))
    s = scheduler(plugin, saved={"fair-tree": {"seen": 1.0}})
    [problem] = s.problems
    assert "is damaged and is counted anew, from the history on: " in problem.message
    s.problems.clear()
    s.step(1000, [])
    s.step(1001, [ev.JobSubmitted(1001, described("new", user="ann", account="x"))])
    assert plugin.standing(1001).usage[plugin.tree.association("x", "ann")] == 640
    assert s.problems == []
