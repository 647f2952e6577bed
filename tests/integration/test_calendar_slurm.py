"""The calendar on a real Slurm: it is edited while headway runs; an edit that is wrong changes nothing."""

from __future__ import annotations

import datetime
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from live_daemon import Daemon, Diary

pytestmark = pytest.mark.slurm


def plugins(**window: Any) -> list[Any]:
    """A window of nodes from midnight to midnight, today and tomorrow, and a policy."""
    today = datetime.datetime.now(datetime.UTC).date()
    days = [today + datetime.timedelta(days=number) for number in (-1, 0, 1)]
    whole = {"days": [day.isoformat() for day in days], "from": "00:00", "to": "00:00", **window}
    return [{"calendar": {"windows": {"upkeep": whole}}}, "easy", "first-fit"]


@pytest.fixture
def site(slurm_factory: Callable[..., Any], tmp_path: Path) -> Iterator[Daemon]:
    """2 nodes of 4 CPUs."""
    daemon = Daemon(slurm_factory(nodes=2, cpus=4), tmp_path, plugins=plugins(nodes=["node1"]))
    yield daemon
    daemon.clean_up()


def edit(site: Daemon, news: list[Any] | str, says: str) -> list[dict[str, Any]]:
    """Edit the configuration, reload, and wait until the log says this once more."""
    already = len(site.said(says))
    if isinstance(news, str):
        site.config_path.write_text(news)
    else:
        site.configure(plugins=news)
    site.send(signal.SIGHUP)
    site.until(lambda: len(site.said(says)) > already, what=f"{says!r} is said")
    return site.said(says)[already:]


def where(site: Daemon, job: str) -> list[str]:
    return [node for _, start in site.starts() if start.job_id == job for node, *_ in start.placement]


def run(site: Daemon, diary: Diary, name: str) -> str:
    """Submit a job of a whole node that has to start; the nodes that it got."""
    job = site.cluster.submit(script=diary.script(0.1), processors=4, job_name=name)
    site.until(lambda: diary.begun()[job] == 1, what=f"{name} runs")
    return str(where(site, job)[0])


def test_an_edited_calendar_is_followed_and_a_broken_one_is_not(site: Daemon) -> None:
    diary = Diary(site.cluster)
    site.start()
    assert run(site, diary, "first") == "node2"
    edit(site, plugins(nodes=["node2"]), "started")
    assert run(site, diary, "second") == "node1"
    refused = "the new configuration is wrong; the old configuration stays in force"
    for broken, why in (
        (
            plugins(nodes=["node1"], days=["someday"]),
            "days: a day of the week, a date or the name of a holiday",
        ),
        (
            plugins(nodes=["nod3"]),
            "calendar: windows: upkeep: nodes: expected nodes of the cluster, found 'nod3'",
        ),
        ("plugins: [calendar: {windows: {", "site.yaml"),
    ):
        assert why in str(edit(site, broken, refused)[0])
    assert run(site, diary, "third") == "node1"
    whole = edit(site, plugins(), "started")
    assert whole
    waits = site.cluster.submit(script=diary.script(0.1), processors=4, job_name="fourth")
    site.until(
        lambda: "upkeep of the calendar" in site.command("explain", waits).stdout,
        what="it waits for the window",
    )
    edit(site, ["easy", "first-fit"], "started")
    site.until(lambda: diary.begun()[waits] == 1, what="it runs without the window")
