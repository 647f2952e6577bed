"""What systemd is told: over real datagram sockets, by a path and by an abstract name."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from notified import Manager
from waiting import until

from headway.daemon.notifying import PULSE, Life, Notifier


@pytest.fixture(params=["path", "abstract"])
def manager(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Manager]:
    with Manager(tmp_path / "notify" if request.param == "path" else None) as listening:
        yield listening


def environment(manager: Manager, **more: str) -> dict[str, str]:
    return {"NOTIFY_SOCKET": manager.address, **more}


def test_words_arrive_as_one_message(manager: Manager) -> None:
    Notifier(environment(manager)).tell("READY=1", "STATUS=well")
    assert manager.message() == {"READY": "1", "STATUS": "well"}
    assert manager.is_silent()


@pytest.mark.parametrize("address", ["", "notify", "vsock:2:1234", "/nobody/is/here", "@nobody"])
def test_where_nobody_listens_nothing_happens(address: str) -> None:
    Notifier({"NOTIFY_SOCKET": address}).tell("READY=1")
    Notifier({}).tell("READY=1")


def test_a_manager_that_does_not_read_stops_nobody(manager: Manager) -> None:
    notifier = Notifier(environment(manager))
    for _ in range(2000):
        notifier.tell(f"STATUS={'x' * 1000}")


@pytest.mark.parametrize(
    ("said", "seconds"),
    [
        ({"WATCHDOG_USEC": "300000000"}, 300.0),
        ({"WATCHDOG_USEC": "300000000", "WATCHDOG_PID": str(os.getpid())}, 300.0),
        ({"WATCHDOG_USEC": "300000000", "WATCHDOG_PID": "1"}, None),
        ({"WATCHDOG_USEC": "0"}, None),
        ({"WATCHDOG_USEC": "soon"}, None),
        ({}, None),
    ],
)
def test_a_watchdog_is_this_processs(said: dict[str, str], seconds: float | None) -> None:
    assert Notifier({"NOTIFY_SOCKET": "@x", **said}).watchdog == seconds
    assert Notifier(said).watchdog is None


def test_a_run_is_ready_turns_and_stops(manager: Manager) -> None:
    life = Life(Notifier(environment(manager, WATCHDOG_USEC="60000000")))
    life.runs(lambda: True, lambda: "well\nREADY=0")
    assert manager.message() == {"READY": "1", "STATUS": "well READY=0"}
    life.turned()
    assert manager.message() == {"WATCHDOG": "1", "STATUS": "well READY=0"}
    life.turned()
    assert manager.is_silent()
    life.stops()
    assert manager.message() == {"STOPPING": "1"}


def test_without_a_watchdog_only_the_status_is_told(manager: Manager) -> None:
    life = Life(Notifier(environment(manager)))
    life.runs(lambda: True, lambda: "well")
    life.turned()
    assert manager.until("STATUS")[0].get("READY") == "1"
    assert manager.message() == {"STATUS": "well"}
    life.stops()


def test_a_reload_begins_and_ends(manager: Manager) -> None:
    life = Life(Notifier(environment(manager)))
    before = time.monotonic_ns() // 1000
    life.reloads()
    told = manager.message()
    assert told["RELOADING"] == "1"
    assert before <= int(told["MONOTONIC_USEC"]) <= time.monotonic_ns() // 1000
    life.stays()
    assert manager.message() == {"READY": "1"}


def test_a_loop_that_hangs_gives_no_sign(manager: Manager) -> None:
    """Pulses are given, and nobody answers to them."""
    pulses: list[float] = []

    def pulse() -> bool:
        pulses.append(time.monotonic())
        return True

    life = Life(Notifier(environment(manager, WATCHDOG_USEC="30000")))
    life.runs(pulse, lambda: "hangs")
    until(lambda: len(pulses) >= 5, "pulses were given")
    life.stops()
    assert [word for told in manager.until("STOPPING") for word in told if word == "WATCHDOG"] == []


def test_before_the_first_cycle_the_pulse_is_the_sign(manager: Manager) -> None:
    life = Life(Notifier(environment(manager, WATCHDOG_USEC="30000")))
    life.runs(lambda: False, lambda: "no cycle yet")
    assert manager.until("WATCHDOG")[-1]["STATUS"] == "no cycle yet"
    life.stops()


def test_pulses_come_more_often_than_a_watchdog_bites() -> None:
    assert Life(Notifier({"NOTIFY_SOCKET": "@x", "WATCHDOG_USEC": "3000000"}))._pause == 1.0
    assert Life(Notifier({"NOTIFY_SOCKET": "@x", "WATCHDOG_USEC": "300000000"}))._pause == PULSE
    assert Life(Notifier({}))._pause == PULSE


def test_a_socket_is_left_to_no_child(manager: Manager) -> None:
    notifier = Notifier(environment(manager))
    open_before = set(os.listdir("/proc/self/fd"))
    notifier.tell("READY=1")
    assert set(os.listdir("/proc/self/fd")) == open_before
