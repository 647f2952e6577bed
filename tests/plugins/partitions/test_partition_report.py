"""What a run says of its partitions: seconds of each stage, and the picture of the machine."""

from __future__ import annotations

import re

import pytest
from test_partition_runs import TORI, figures, job, run

from headway.results import PartitionStep
from headway_plugins.partitions.picture import section, standing
from headway_plugins.partitions.plugin import Partitions as PartitionsPlugin
from headway_plugins.partitions.stages import stage_seconds

#: Table 1: seconds of stages 1 to 3, 4, 5 to 8 and 9 to 10.
TABLE_1 = {512: (1, 26, 14, 10), 1024: (1, 36, 15, 11), 2048: (2, 38, 19, 11)}


@pytest.mark.parametrize("nodes", TABLE_1)
def test_3_a_run_of_an_empty_job_has_the_seconds_of_table_1(nodes):
    """E1 to E5 follow from these (``headway reproduce open-job-management``)."""
    result = run([job(1, 0, nodes, 0, 60)])
    found = figures(result)["stage_seconds"]
    assert found == {str(nodes): dict(zip(("prepare", "boot", "load", "halt"), TABLE_1[nodes], strict=True))}


def test_a_boot_that_fails_is_in_no_stage():
    nodes = ("m0-0-0",)
    states = [(0, "promised"), (1, "configuring"), (5, "deallocating"), (8, "free"), (8, "configuring"),
              (34, "ready")]  # fmt: skip
    steps = [PartitionStep(float(time), "J.1", nodes, "mesh", state) for time, state in states]
    assert stage_seconds(steps, 512) == {512: {"prepare": 1, "boot": 26, "halt": 3}}


@pytest.mark.parametrize("blocks", ["on-demand", "prepared"])
def test_every_partition_is_told_of_until_it_is_free(blocks):
    faults = {"boot_failure_rate": 0.2, "proxy_mtbf": 300.0, "node_mtbf": 3000.0, "node_repair": 300.0}
    result = run([job(n, 9 * n, 512 << n % 3, 50) for n in range(40)], faults=faults, blocks=blocks)
    assert [step.time for step in result.partitions] == sorted(step.time for step in result.partitions)
    left = standing(result.partitions, float("inf"))
    assert {step.state for step in left} <= ({"ready"} if blocks == "prepared" else set())
    busy = {step.job_id for step in result.partitions if step.state == "busy"}
    assert busy == {one.job.id for one in result.jobs if one.start_time is not None}


def test_the_picture_shows_who_has_what_when_most_is_lost():
    result = run(TORI, (4, 2, 2), torus={"connection": "torus"})
    worst = figures(result)["worst_moment"]
    assert worst["cause"] == "wiring"
    html = section(result)
    assert f"{worst['idle']} of 16 midplanes are idle while job {worst['job']} waits first" in html
    taken = [node for step in standing(result.partitions, worst["time"]) for node in step.nodes]
    assert len(taken) == worst["busy"] == len(re.findall(r">m[-0-9]+: job ", html))
    assert len(re.findall(r">m[-0-9]+: idle<", html)) == worst["idle"]
    assert "link of m0-0-0 along z: " in html
    [part] = PartitionsPlugin(PartitionsPlugin.Options()).register_report_sections([result])
    assert part.title == "The machine: fcfs"


def test_where_nothing_was_lost_the_picture_says_so():
    assert "Nothing was lost to shape or wiring. 1 of 8 midplanes are in use." in section(
        run([job(1, 0, 512, 60)])
    )


def test_what_users_wrote_is_text_in_the_picture():
    rude = job("<b>", 0, 512, 60)
    assert "J<b>" not in section(run([rude])) and "J&lt;b&gt;" in section(run([rude]))


def test_without_steps_there_is_no_picture():
    result = run([job(1, 0, 512, 60)])
    result.partitions = []
    assert section(result) == ""
