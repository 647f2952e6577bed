"""Slurm's power saving and its measurements: what is read, and what is asked of it when."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs
from test_slurm_adapter_unit import FIXTURES, RECORDS, PretendedSlurm, adapter, events, result

from headway import decisions as d
from headway import events as ev
from headway.errors import UserError
from headway.model import ClusterDescription, NodeDescription
from headway.state import State
from headway_adapters.polling.snapshot import Snapshot
from headway_adapters.slurm import SlurmAdapter, reader
from headway_adapters.slurm.power import PowerSaving

MEASURED = (FIXTURES / "show-nodes-energy-oneline.txt").read_text()


# ---------------------------------------------------------------------- reading


@pytest.mark.parametrize(
    ("state", "flags", "power", "available"),
    [
        # As Slurm 22.05 shows a node on its way, one after another.
        ("idle", [], None, True),
        ("idle", ["POWER_DOWN"], "falling asleep", True),
        ("idle", ["POWERING_DOWN"], "falling asleep", True),
        ("idle", ["POWERED_DOWN"], "asleep", True),
        ("idle", ["POWER_UP", "POWERED_DOWN"], "waking", True),
        ("idle", ["NOT_RESPONDING", "POWERING_UP"], "waking", True),
        ("down", ["POWERED_DOWN", "NOT_RESPONDING"], "asleep", False),
        ("down", ["DRAIN", "POWERED_DOWN", "NOT_RESPONDING"], "asleep", False),
        ("idle", ["DRAIN", "POWERED_DOWN"], "asleep", False),
        ("idle", ["NOT_RESPONDING"], None, False),
    ],
)
def test_a_node_that_sleeps_is_in_order_where_headway_rules_sleep(state, flags, power, available):
    document = {"nodes": [{"name": "n1", "state": state, "state_flags": flags, "cpus": 4}]}
    found = reader.read_nodes(json.dumps(document).encode(), reader.Site(("batch",), power=True), set())
    assert found.power.get("n1") == power and found.nodes["n1"].available == available
    elsewhere = reader.read_nodes(json.dumps(document).encode(), reader.Site(("batch",)), set())
    assert elsewhere.nodes["n1"].available == (not flags)


def test_watts_as_slurm_measured_them():
    assert reader.read_watts(MEASURED) == {"node1": 250.0, "node2": 250.0}
    assert reader.read_watts((FIXTURES / "show-nodes-oneline.txt").read_text()) == {}, "0 is no measurement"
    assert reader.read_watts("NodeName=a CurrentWatts=n/s\nNodeName=b\nnonsense") == {}


def test_a_jobs_energy_is_that_of_its_steps():
    text = "12|\n12.batch|575\n12.0|25\n13_4.batch|7\n14.batch|\n15.batch|18446744073709551614\n16|99\n"
    assert reader.read_energies(text) == {"12": 600.0, "13_4": 7.0}


# ---------------------------------------------------------------------- what is asked for when


def shown(down: tuple[str, ...] = (), **power: str) -> Snapshot:
    nodes = {name: NodeDescription(name, 4, available=name not in down) for name in ("n1", "n2")}
    return Snapshot(time=0.0, nodes=nodes, power=power)


def test_waking_one_that_falls_asleep_waits_until_it_sleeps():
    saving = PowerSaving()
    assert saving.down(["n1"], shown()) == ["n1"]
    saving.went(["n1"])
    assert saving.up(["n1"], shown()) == [], "Slurm would forget it"
    assert saving.looked(shown()) == ([], [])
    assert saving.looked(shown(n1="falling asleep")) == ([], [])
    assert saving.looked(shown(n1="asleep")) == (["n1"], [])
    assert saving.looked(shown(n1="asleep")) == ([], []), "asked for once"


def test_sleepers_are_woken_and_the_others_are_awake():
    assert PowerSaving().up(["n1", "n2"], shown(n1="asleep")) == ["n1"]
    assert PowerSaving().down(["n1", "n2"], shown(n1="asleep")) == ["n2"]


def test_one_who_was_to_wake_and_is_to_sleep_again_is_left_asleep():
    saving = PowerSaving()
    saving.went(saving.down(["n1"], shown()))
    saving.up(["n1"], shown())
    assert saving.down(["n1"], shown()) == []
    assert saving.looked(shown(n1="asleep")) == ([], [])


def test_a_node_that_is_down_after_waking_did_not_wake():
    saving = PowerSaving()
    saving.looked(shown(n1="waking", n2="waking"))
    assert saving.looked(shown(("n1",), n1="asleep")) == ([], ["n1"]), "n2 woke"
    assert saving.looked(shown(("n1",), n1="asleep")) == ([], []), "told once"


# ---------------------------------------------------------------------- the adapter


def test_two_ways_to_sleep_are_refused() -> None:
    hooks = {"power_down": ["off", "{node}"], "power_up": ["on", "{node}"]}
    with pytest.raises(UserError, match="expected only one of the two ways to sleep, found both"):
        adapter_options = {"partitions": ["batch"], "power": True, "actuators": hooks}
        SlurmAdapter(adapter_options)


def test_capabilities_follow_the_options() -> None:
    flat = ClusterDescription.flat(1)
    options: dict[str, Any] = {"partitions": ["batch"]}
    assert not {d.SetFrequency, d.PowerDown} & SlurmAdapter.capable_of(flat, options)
    options["actuators"] = {"set_frequency": ["ssh", "{node}", "x", "{hertz}"]}
    assert d.SetFrequency in SlurmAdapter.capable_of(flat, options)
    assert d.PowerDown in SlurmAdapter.capable_of(flat, {**options, "power": True})
    assert SlurmAdapter.capable_of(flat) == SlurmAdapter.capabilities
    with SlurmAdapter({**options, "power": True}, transport=PretendedSlurm()) as one:
        assert one.capabilities == SlurmAdapter.capable_of(flat, {**options, "power": True})


def test_a_run_begins_knowing_who_sleeps() -> None:
    slurm = PretendedSlurm()
    listed = json.loads((FIXTURES / "sinfo.json").read_text())
    names = sorted(node["name"] for node in listed["nodes"])
    for node in listed["nodes"]:
        if node["name"] == names[0]:
            node["state"], node["state_flags"] = "idle", ["POWERED_DOWN"]
    slurm.answer = lambda argv: result(argv, json.dumps(listed)) if argv[0] == "sinfo" else None
    for _ in range(2):  # a restart is a first look as well
        with adapter(slurm, power=True) as one:
            state = State(one.describe())
            assert state.nodes.power == {}, "a description has no power states"
            moment = one.wait(None)
            assert moment is not None
            state.now = moment[0]
            state.apply(moment[1])
            assert state.nodes.power == {names[0]: "asleep"}


@pytest.fixture
def measuring() -> PretendedSlurm:
    """A Slurm with a meter: its nodes are called as the recorded ones, their watts are recorded too."""
    slurm = PretendedSlurm()
    config = (FIXTURES / "show-config.txt").read_text()
    watts = MEASURED.replace("NodeName=node1 ", "NodeName=n1 ")

    def answer(argv: tuple[str, ...]) -> Any:
        if "config" in argv:
            return result(argv, config.replace("acct_gather_energy/none", "acct_gather_energy/rapl"))
        if "nodes" in argv:
            return result(argv, watts)
        if argv[0] == "sacct" and "JobID,ConsumedEnergyRaw" in argv:
            return result(argv, "7|\n7.batch|1234\n")
        return None

    slurm.answer = answer
    return slurm


def test_measured_watts_are_in_the_snapshot(measuring: PretendedSlurm) -> None:
    with adapter(measuring) as one:
        known = one.describe().nodes[0].name
        text = MEASURED.replace("NodeName=node1 ", f"NodeName={known} ")
        before = measuring.answer
        measuring.answer = lambda argv: result(argv, text) if "nodes" in argv else before(argv)
        assert one.measured_watts() == {}
        events(one)
        assert one.measured_watts()[known] == 250.0


def test_without_a_meter_nobody_asks(tmp_path: Path) -> None:
    slurm = PretendedSlurm()
    with adapter(slurm) as one:
        one.describe()
        events(one)
        assert one.measured_watts() == {}
    assert not [argv for argv in slurm.said if "nodes" in argv]


def test_what_a_job_used_is_logged_when_it_ended(measuring: PretendedSlurm) -> None:
    with capture_logs() as logs, adapter(measuring, accounting="yes") as one:
        one.describe()
        events(one)
        now = int(time.time())
        ended = {**RECORDS[7], "job_state": "COMPLETED", "end_time": now}
        measuring.jobs = [ended]
        assert any(isinstance(e, ev.JobEnded) for e in events(one, 0.6))
    said = [entry for entry in logs if entry["event"] == "what a job used"]
    assert [(entry["job"], entry["joules"]) for entry in said] == [("7", 1234)]
