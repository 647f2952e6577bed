"""A copy of a live cluster on which nodes sleep, run into the future."""

from __future__ import annotations

from typing import Any

import pytest
from building import alike, described, node_cluster

from headway import events as ev
from headway.emulation import emulate
from headway.emulation.live_copy import Copy
from headway.energy.profiles import load_profile, with_energy
from headway.metrics.energy import energy_use
from headway.plugins import Catalogue, PluginConfig

NOW = 1e9
#: Seconds that the profile's nodes take to wake.
WAKE = 30


class Live:
    """A cluster with one job that waits, and three nodes of which one is on."""

    def describe(self) -> Any:
        return node_cluster(*alike(3, 4))

    def wait(self, deadline: float | None) -> tuple[float, list[ev.Event]]:
        return NOW, [
            ev.JobSubmitted(NOW - 5, described("1", 12, 100, NOW - 5)),
            ev.NodePowerChanged(NOW, "n0", "on"),
            ev.NodePowerChanged(NOW, "n1", "asleep"),
            ev.NodePowerChanged(NOW, "n2", "falling asleep"),
        ]


def forward(*plugins: str) -> Any:
    copy = Copy(Live())  # type: ignore[arg-type]
    cluster = with_energy(copy.cluster, load_profile("present-day"))
    configs = [PluginConfig(name) for name in ("easy", *plugins)]
    return emulate(
        cluster, copy.jobs, configs, Catalogue(), label="copy", start=copy.now, running=copy.running,
        power=copy.power,
    )  # fmt: skip


def test_the_job_waits_until_they_are_awake() -> None:
    result = forward("power-down")
    # The second has to fall asleep, which takes ten seconds, before it can be woken.
    assert result.jobs[0].start_time == NOW + 10 + WAKE
    use = energy_use(result)
    assert use is not None
    assert use.node_seconds_asleep == pytest.approx(WAKE + 10 + WAKE)
    # What was before the copy is over: the job has waited for five seconds.
    assert use.power.begin == NOW


def test_where_nobody_could_wake_them_they_are_on() -> None:
    result = forward()
    assert result.jobs[0].start_time == NOW
    assert result.power == []


def test_without_an_energy_profile_nothing_is_known_of_sleep() -> None:
    copy = Copy(Live())  # type: ignore[arg-type]
    assert copy.power == {"n1": "asleep", "n2": "falling asleep"}
    result = emulate(
        copy.cluster, copy.jobs, [PluginConfig("easy")], Catalogue(), label="copy", start=copy.now,
        power=copy.power,
    )  # fmt: skip
    assert result.jobs[0].start_time == NOW
