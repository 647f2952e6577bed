"""The site's commands for frequencies and power: what is run when, and what becomes of what fails.

Nodes are files: a node is on while its file is there. The commands are real processes.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import structlog
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from waiting import bound, limit

from headway import decisions as d
from headway import events as ev
from headway.errors import Failure
from headway.model import NodeDescription
from headway_adapters.polling.actuators import (
    ASLEEP,
    FALLING_ASLEEP,
    WAKING,
    ActuatorOptions,
    Actuators,
    Unfit,
    capabilities,
    fill,
)
from headway_adapters.polling.snapshot import Snapshot
from headway_adapters.transport import LocalTransport, Result

HANGS = [sys.executable, "-c", "import time; time.sleep(60)", "{node}"]


class Room:
    """A batch system of which the actuators see the nodes, and a machine room of files."""

    def __init__(self, directory: Path, *names: str) -> None:
        self.directory = directory
        self.names = names
        self.reasons: dict[str, str] = {}
        self.ran: list[tuple[str, ...]] = []
        self.poked = threading.Event()
        self.slow_to_appear: set[str] = set()
        self._transport = LocalTransport()
        for name in names:
            (directory / name).touch()

    # what the actuators need

    def act(self, argv, timeout: float) -> Result:
        self.ran.append(tuple(argv))
        if argv[0] == "drain":
            self.reasons[argv[1]] = argv[2]
            return Result(tuple(argv), 0, b"", "", 0.0)
        if argv[0] == "undrain":
            self.reasons.pop(argv[1], None)
            return Result(tuple(argv), 0, b"", "", 0.0)
        return self._transport.run(argv, timeout)

    def drain(self, node: str, reason: str) -> tuple[str, ...]:
        return ("drain", node, reason)

    def undrain(self, node: str) -> tuple[str, ...]:
        return ("undrain", node)

    def usable(self, node: str) -> bool:
        return self.on(node) and node not in self.reasons and node not in self.slow_to_appear

    def poke(self) -> None:
        self.poked.set()

    # what tests do and ask

    def sleeps(self, node: str) -> None:
        """An earlier run has put this node to sleep."""
        (self.directory / node).unlink()
        self.reasons[node] = ASLEEP

    def on(self, node: str) -> bool:
        return (self.directory / node).exists()

    def snapshot(self) -> Snapshot:
        nodes = [
            NodeDescription(name, 4, available=self.usable(name), reason=f"drained: {self.reasons.get(name)}")
            for name in self.names
        ]
        return Snapshot(time=0.0, nodes={node.name: node for node in nodes})


class Driven:
    """Actuators in a room, driven until something holds."""

    def __init__(self, room: Room, **options: Any) -> None:
        self.room = room
        settings: dict[str, Any] = {
            "power_down": ["rm", f"{room.directory}/{{node}}"],
            "power_up": ["touch", f"{room.directory}/{{node}}"],
            "confirm_power": ["test", "-e", f"{room.directory}/{{node}}"],
            "set_frequency": ["touch", f"{room.directory}/{{node}}-{{job}}-{{hertz}}"],
            "confirm_interval": 0.05,
            "confirm_timeout": 0.5,
            "wake_timeout": 2.0,
            **options,
        }
        settings = {key: value for key, value in settings.items() if value is not None}
        self.events: list[ev.Event] = []
        with structlog.testing.capture_logs() as self.log:
            self.it = Actuators(
                ActuatorOptions(**settings), room, log=structlog.get_logger(), clock=lambda: 7.0
            )

    def until(self, condition: Callable[[], object]) -> None:
        end = time.monotonic() + limit()
        with structlog.testing.capture_logs() as log:
            while True:
                self.events += self.it.advance().events
                if condition():
                    break
                assert time.monotonic() < end, (self.it.power, self.room.ran, self.log)
                due = self.it.due
                self.room.poked.wait(min(0.2, 0.2 if due is None else due))
                self.room.poked.clear()
        self.log += log

    def done(self) -> None:
        self.until(lambda: not self.it.busy)
        self.events += self.it.advance().events

    def said(self, text: str) -> dict[str, Any]:
        found = [entry for entry in self.log if entry["event"] == text]
        assert found, [entry["event"] for entry in self.log]
        return dict(found[-1])


@pytest.fixture
def room(tmp_path: Path) -> Room:
    return Room(tmp_path, "n1", "n2")


@pytest.fixture
def drive(room: Room):
    made: list[Driven] = []

    def begin(**options: Any) -> Driven:
        made.append(Driven(room, **options))
        return made[-1]

    yield begin
    for driven in made:
        room._transport.close()
        driven.it.close()


def down(*nodes: str) -> d.PowerDown:
    return d.PowerDown(nodes, "idle")


def up(*nodes: str) -> d.PowerUp:
    return d.PowerUp(nodes, "wanted")


# ---------------------------------------------------------------------- options


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"set_frequency": ["cpupower", "{node}"]}, r"set_frequency: expected \{hertz\} in the command"),
        ({"set_frequency": ["x", "{node}", "{hertz}", "{user}"]}, r"\{user\} has no meaning here"),
        ({"power_down": ["{node}"], "power_up": ["x", "{node}"]}, "expected a program as the first word"),
        ({"power_down": ["off"], "power_up": ["x", "{node}"]}, r"power_down: expected \{node\}"),
        ({"power_down": ["off", "{node}"]}, "expected both or neither"),
        ({"power_up": []}, "at least 1 item"),
        ({"timeout": 0}, "greater than 0"),
        ({"power_of": ["x"]}, "not permitted"),
    ],
)
def test_options_that_make_no_sense_are_refused(options, says):
    with pytest.raises(ValidationError, match=says):
        ActuatorOptions(**options)


def test_capabilities_grow_with_what_is_configured():
    frequency = ActuatorOptions(set_frequency=("x", "{node}", "{hertz}"))
    power = ActuatorOptions(power_down=("x", "{node}"), power_up=("y", "{node}"))
    assert capabilities(None, drains=True) == frozenset()
    assert capabilities(frequency, drains=False) == {d.SetFrequency}
    assert capabilities(power, drains=True) == {d.PowerDown, d.PowerUp}
    assert capabilities(power, drains=False) == frozenset()


def test_placeholders_are_words_or_parts_of_words():
    words = ("ssh", "{node}", "headway", "--job={job}", "'{job}'", "--frequency", "{hertz}")
    filled = fill(words, node="n1", job="12[3].s", hertz="2400000000")
    assert filled == ("ssh", "n1", "headway", "--job=12[3].s", "'12[3].s'", "--frequency", "2400000000")


@pytest.mark.parametrize(
    "values",
    [
        {"node": "-oProxyCommand=x"}, {"node": "n1;reboot"}, {"node": "n1 n2"}, {"node": ""},
        {"node": "$(id)"}, {"job": "1\n2"}, {"job": "`id`"}, {"job": "--all"},
        {"hertz": "1e9"}, {"hertz": "-1"}, {"state": "maybe"},
    ],
)  # fmt: skip
def test_a_value_that_is_not_what_its_name_says_is_refused(values):
    with pytest.raises(Unfit, match="is not"):
        fill(("x", *("{" + key + "}" for key in values)), **values)


@given(st.text(max_size=20))
def test_no_text_becomes_more_than_a_plain_word(text):
    try:
        filled = fill(("x", "a{node}b"), node=text)
    except Unfit:
        return
    assert filled == ("x", f"a{text}b") and set(text) <= set(
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"
    )


# ---------------------------------------------------------------------- frequency


def test_a_frequency_is_set_on_every_node_of_the_job(room, drive):
    driven = drive()
    assert driven.it.set_frequency(d.SetFrequency("12", 2.4e9), (("n1", 2), ("n2", 2))) == ""
    driven.done()
    assert driven.events == [ev.JobFrequencyChanged(7.0, "12", 2.4e9)]
    assert room.on("n1-12-2400000000") and room.on("n2-12-2400000000")


def test_a_node_that_fails_makes_the_decision_fail(drive):
    program = "import sys; sys.exit('no cpufreq here' if sys.argv[1] == 'n2' else 0)"
    driven = drive(set_frequency=[sys.executable, "-c", program, "{node}", "{hertz}"])
    wish = d.SetFrequency("12", 2.4e9)
    driven.it.set_frequency(wish, (("n1", 2), ("n2", 2)))
    driven.done()
    assert driven.events == [ev.DecisionFailed(7.0, wish, "node n2: no cpufreq here")]


def test_of_several_wishes_for_a_job_the_last_counts(room, drive):
    driven = drive()
    for hertz in (1e9, 2e9, 3e9):
        driven.it.set_frequency(d.SetFrequency("12", hertz), (("n1", 2),))
    driven.done()
    assert [argv[1].rpartition("-")[2] for argv in room.ran] == ["1000000000", "3000000000"]
    assert driven.events[-1] == ev.JobFrequencyChanged(7.0, "12", 3e9)


def test_the_clock_is_given_back_when_the_job_ends(room, drive):
    driven = drive(reset_frequency=["echo", "{node}", "{job}"])
    driven.it.set_frequency(d.SetFrequency("12", 1e9), (("n1", 2), ("n2", 2)))
    driven.done()
    driven.it.job_ended("13")
    driven.it.job_ended("12")
    driven.it.job_ended("12")
    driven.done()
    assert sorted(room.ran[2:]) == [("echo", "n1", "12"), ("echo", "n2", "12")]


def test_a_job_id_that_is_none_is_refused_at_once(room, drive):
    assert "is not the id of a job" in drive().it.set_frequency(d.SetFrequency("1;2", 1e9), (("n1", 2),))
    assert "no known nodes" in drive().it.set_frequency(d.SetFrequency("12", 1e9), ())
    assert room.ran == []


# ---------------------------------------------------------------------- sleep


def test_a_node_is_drained_then_switched_off_then_marked(room, drive):
    driven = drive()
    assert driven.it.power_down(down("n1")) == ""
    assert driven.it.power == {"n1": "falling asleep"}
    driven.done()
    assert driven.it.power == {"n1": "asleep"}
    assert not room.on("n1") and room.reasons == {"n1": ASLEEP}
    assert [argv[0] for argv in room.ran] == ["drain", "rm", "test", "drain"]
    assert driven.events == []


def test_a_sleeping_node_is_shown_in_order_and_asleep(room, drive):
    driven = drive()
    driven.it.power_down(down("n1"))
    driven.done()
    raw = room.snapshot()
    assert not raw.nodes["n1"].available
    shown = driven.it.show(raw)
    assert shown.nodes["n1"].available and shown.nodes["n1"].reason == ""
    assert shown.power == {"n1": "asleep"} and shown.nodes["n2"] == raw.nodes["n2"]


def test_it_wakes_when_the_batch_system_finds_it(room, drive):
    driven = drive()
    driven.it.power_down(down("n1"))
    driven.done()
    room.slow_to_appear.add("n1")
    driven.it.power_up(up("n1"))
    driven.until(lambda: ("undrain", "n1") in room.ran)
    driven.until(lambda: driven.it.due is not None and driven.it.power == {"n1": "waking"})
    room.slow_to_appear.clear()
    driven.done()
    assert driven.it.power == {} and room.on("n1") and room.reasons == {}
    assert driven.events == []


def test_a_node_that_stays_on_goes_back_into_service(room, drive):
    driven = drive(power_down=["true", "{node}"])
    driven.it.power_down(down("n1"))
    driven.done()
    assert driven.it.power == {} and room.reasons == {}
    [failed] = driven.events
    assert failed.decision == d.PowerDown(("n1",)) and "it is still on after 0.5 s" in failed.message


def test_a_power_down_that_fails_goes_back_into_service(room, drive):
    driven = drive(power_down=["false", "{node}"])
    driven.it.power_down(down("n1"))
    driven.done()
    assert driven.it.power == {} and room.reasons == {}
    assert "node n1: false ended with status 1" in driven.events[0].message


def test_a_program_that_is_not_there_is_a_failure_of_the_decision(room, drive):
    driven = drive(power_down=["no-such-program-here", "{node}"])
    driven.it.power_down(down("n1"))
    driven.done()
    assert "'no-such-program-here' is not installed" in driven.events[0].message and room.reasons == {}


def test_without_a_question_whether_it_is_off_the_command_is_believed(drive):
    driven = drive(confirm_power=None)
    driven.it.power_down(down("n1"))
    driven.done()
    assert driven.it.power == {"n1": "asleep"}
    driven.it.power_up(up("n1"))
    driven.done()
    assert driven.it.power == {}


def test_a_question_with_a_state_is_asked_for_that_state(room, drive):
    program = (
        "import os, sys; on = os.path.exists(sys.argv[1]); sys.exit(0 if on == (sys.argv[2] == 'on') else 1)"
    )
    question = [sys.executable, "-c", program, f"{room.directory}/{{node}}", "{state}"]
    driven = drive(confirm_power=question)
    driven.it.power_down(down("n1"))
    driven.done()
    assert driven.it.power == {"n1": "asleep"}
    driven.it.power_up(up("n1"))
    driven.done()
    assert driven.it.power == {}


def test_a_question_that_hangs_confirms_nothing(room, drive):
    driven = drive(confirm_power=HANGS, timeout=0.1)
    driven.it.power_down(down("n1"))
    driven.done()
    assert "it is still on" in driven.events[0].message


def test_waking_one_that_is_falling_asleep_is_done_once_it_sleeps(room, drive):
    driven = drive()
    driven.it.power_down(down("n1"))
    driven.it.power_up(up("n1"))
    driven.done()
    assert driven.it.power == {} and room.on("n1")
    assert [argv[0] for argv in room.ran if argv[0] in ("rm", "touch")] == ["rm", "touch"]


def test_sleep_again_takes_the_wish_to_wake_back(drive):
    driven = drive()
    driven.it.power_down(down("n1"))
    driven.it.power_up(up("n1"))
    driven.it.power_down(down("n1"))
    driven.done()
    assert driven.it.power == {"n1": "asleep"}


def test_asking_twice_does_it_once(room, drive):
    driven = drive()
    for _ in range(2):
        driven.it.power_down(down("n1"))
    driven.done()
    driven.it.power_down(down("n1"))
    driven.it.power_up(up("n1", "n2"))
    driven.it.power_up(up("n1"))
    assert driven.it.power_down(down("n1")) == "node n1 is waking"
    driven.done()
    assert [argv[0] for argv in room.ran if argv[0] in ("rm", "touch")] == ["rm", "touch"]


def test_names_that_are_none_are_refused_at_once(room, drive):
    assert "is not the name of a node" in drive().it.power_down(down("n1", "-h"))
    assert drive().it.power_up(up()) == "no nodes are named"
    assert room.ran == []


# ---------------------------------------------------------------------- nodes that do not wake


def test_a_wake_command_that_hangs_is_ended_and_the_node_is_drained(room, drive):
    room.sleeps("n1")
    driven = drive(power_up=HANGS, timeout=0.2, wake_timeout=1.0)
    driven.it.adopt(room.snapshot())
    began = time.monotonic()
    driven.it.power_up(up("n1"))
    driven.done()
    assert time.monotonic() - began < bound(5)
    assert room.reasons == {"n1": "headway: did not wake within 1 s"}
    assert driven.it.power == {}, "it is down now, and no longer asleep"
    [failed] = driven.events
    assert failed.decision == d.PowerUp(("n1",)) and "did not answer" in failed.message
    assert driven.said("a node does not wake; it is drained")["log_level"] == "error"


def test_a_command_that_fails_once_is_tried_again(room, drive):
    program = (
        "import os, sys; p = sys.argv[1]; "
        "sys.exit('busy') if not os.path.exists(p + '.tried') and not open(p + '.tried', 'w').close() "
        "else open(p, 'w').close()"
    )
    wake = [sys.executable, "-c", program, f"{room.directory}/{{node}}"]
    driven = drive(power_up=wake, wake_timeout=limit())
    driven.it.power_down(down("n1"))
    driven.done()
    driven.it.power_up(up("n1"))
    driven.done()
    assert driven.it.power == {} and room.on("n1") and driven.events == []
    assert driven.said("a node could not be woken; trying again")["node"] == "n1"


@pytest.mark.parametrize(
    ("options", "appears", "says"),
    [
        ({"power_up": ["true", "{node}"]}, True, "confirm_power does not report the node as on"),
        ({}, False, "the batch system does not report the node as usable"),
    ],
)
def test_a_node_that_never_comes_up_is_drained(room, drive, options, appears, says):
    driven = drive(wake_timeout=0.5, **options)
    driven.it.power_down(down("n1"))
    driven.done()
    if not appears:
        room.slow_to_appear.add("n1")
    driven.it.power_up(up("n1"))
    driven.done()
    assert room.reasons == {"n1": "headway: did not wake within 0.5 s"}
    assert driven.events[0].message == f"node n1: {says}"


# ---------------------------------------------------------------------- others, and restarts


@pytest.mark.parametrize(("reason", "freed"), [("bad disk", True), (ASLEEP, False)])
def test_who_gives_a_sleeping_node_another_reason_has_it(room, drive, reason, freed):
    driven = drive()
    driven.it.power_down(down("n1"))
    driven.done()
    room.reasons["n1"] = reason
    driven.it.looked(room.snapshot())
    assert (driven.it.power == {}) == freed


def test_who_wakes_a_node_himself_has_it(room, drive):
    driven = drive()
    driven.it.power_down(down("n1"))
    driven.done()
    (room.directory / "n1").touch()
    room.reasons.clear()
    driven.it.looked(room.snapshot())
    assert driven.it.power == {}


def test_a_new_run_knows_who_sleeps_and_goes_on_waking(room, drive):
    (room.directory / "n1").unlink()
    room.reasons = {"n1": WAKING, "n2": FALLING_ASLEEP}
    driven = drive()
    driven.it.adopt(room.snapshot())
    assert driven.it.power == {"n1": "waking", "n2": "asleep"}
    assert room.ran == [], "nothing is done until the first look"
    driven.it.go_on_waking()
    driven.done()
    assert driven.it.power == {"n2": "asleep"} and room.on("n1")


# ---------------------------------------------------------------------- dry


def test_dry_only_logs_and_each_thing_once(room, drive):
    driven = drive(dry=True)
    with structlog.testing.capture_logs() as log:
        for _ in range(2):
            assert driven.it.power_down(down("n1")) == ""
            assert driven.it.power_up(up("n2")) == ""
            assert driven.it.set_frequency(d.SetFrequency("12", 2e9), (("n1", 1),)) == ""
    driven.done()
    assert room.ran == [] and driven.it.power == {} and driven.events == []
    commands = [entry["command"] for entry in log]
    assert [command.split()[0] for command in commands] == ["rm", "touch", "touch"]
    assert commands[2].endswith("n1-12-2000000000")


def test_closing_leaves_nothing_running(room, drive):
    driven = drive(power_down=HANGS)
    driven.it.power_down(down("n1"))
    driven.until(lambda: any(argv[0] == sys.executable for argv in room.ran))
    began = time.monotonic()
    room._transport.close()
    driven.it.close()
    assert time.monotonic() - began < bound(5)
    with pytest.raises(Failure):
        room._transport.run(["true"], 1.0)
