"""Energy on the report's page, for one run and for several."""

from __future__ import annotations

import re

import msgspec
import pytest
from building import alike, emulate, node_cluster, traced
from rich.console import Console

from headway.energy.profiles import load_profile, with_energy
from headway.metrics import summarise
from headway.report import compare_table, render_html
from headway.results import RunResult
from headway_plugins.policies.fcfs import Fcfs

PRESENT = load_profile("present-day")


def ran(label: str, runtime: float, profile=PRESENT) -> RunResult:
    cluster = node_cluster(*alike(2, 128))
    if profile is not None:
        cluster = with_energy(cluster, profile)
    run = emulate(cluster, [traced("1", 128, runtime), traced("2", 256, runtime, submit=10)], Fcfs())
    return RunResult(label, cluster, run.adapter.results())


def words(page: str) -> str:
    return " ".join(re.sub(r"<(svg|script|style).*?</\1>|<[^>]+>", " ", page, flags=re.S).split())


def test_one_run_shows_power_over_time_in_kilowatts_and_its_energy() -> None:
    result = ran("fcfs", 3600)
    page = render_html([result])
    assert "<svg" in page and "Power over time" in page and ">kW<" in page
    text = words(page)
    # An hour of one busy node and one idle, and an hour of both busy.
    assert summarise(result)["energy"]["total"] == pytest.approx((734 + 222 + 2 * 734) * 3600)
    assert "energy 2.424 kWh" in text
    assert "the shade below what the jobs' processors do" in text


def test_the_page_names_the_profile_and_tells_what_jobs_of_each_class_used() -> None:
    text = words(render_html([ran("fcfs", 1800)]))
    assert "energy profile present-day" in text
    # On 128 and 256 processors for half an hour each, of which a busy one draws 4.8 W.
    assert re.search(r"slowdown slowdown ratio energy all 2 \S+ min .* 0\.4608 kWh SN", text)
    assert re.search(r"runtime / estimate 2 .* energy 2 0\.4608 kWh 0\.4608 kWh", text)
    relative = msgspec.structs.replace(PRESENT, absolute=False)
    assert "present-day, not calibrated: relative figures" in words(render_html([ran("a", 60, relative)]))


def test_pools_and_node_classes_are_told_apart_where_there_are_several() -> None:
    paper = load_profile("chandio2014")
    cluster = node_cluster(*alike(2, 1))
    kinds = zip(cluster.nodes, ("I", "II"), strict=True)
    nodes = [msgspec.structs.replace(node, node_class=kind) for node, kind in kinds]
    cluster = with_energy(msgspec.structs.replace(cluster, nodes=tuple(nodes)), paper)
    run = emulate(cluster, [traced("1", 1, 3600), traced("2", 1, 3600)], Fcfs())
    text = words(render_html([RunResult("two", cluster, run.adapter.results())]))
    # An hour at 40 W, and 5/6 of one at 1.2 * (1.9/1.3)^2 times as much.
    assert "energy of jobs on class I 144 kJ energy of jobs on class II 308 kJ" in text
    assert "energy of jobs on class" not in words(render_html([ran("fcfs", 60)]))


def test_without_a_profile_nothing_is_said_of_power() -> None:
    text = words(render_html([ran("fcfs", 60, None), ran("other", 60, None)]))
    assert "Power over time" not in text and "peak power" not in text


def test_a_comparison_has_energy_and_marks_the_least() -> None:
    runs = [ran("long", 7200), ran("short", 3600)]
    text = words(render_html(runs))
    assert re.search(r"lost capacity energy peak power", text)
    assert re.search(r"long 2 .* 4\.848 kWh 1\.468 kW short 2 .* 2\.424 kWh ★", text)
    console = Console(width=120, record=True, file=open("/dev/null", "w", encoding="utf-8"))  # noqa: SIM115
    console.print(compare_table([summarise(run) for run in runs]))
    assert "2.424 kWh*" in console.export_text()


def test_relative_figures_have_no_unit() -> None:
    relative = msgspec.structs.replace(PRESENT, absolute=False)
    page = render_html([ran("a", 3600, relative), ran("b", 7200)])
    assert ">relative<" in page and ">kW<" not in page
    assert "kWh" not in words(page).split("What was run")[0]


def test_a_run_without_a_profile_beside_one_with_it() -> None:
    text = words(render_html([ran("with", 3600), ran("without", 3600, None)]))
    assert "2.424 kWh" in text and "Power over time" in text
