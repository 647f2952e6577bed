"""Energy counters are summed over wraps; what cannot be read is said and left out."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway_adapters.node_agent.rapl import Counter, Meter, total_joules, total_watts, used


@pytest.fixture
def notes() -> list[str]:
    return []


@pytest.fixture
def meter(tree, notes) -> Meter:
    return Meter(tree.root, note=notes.append)


def at(microjoules: int, reach: int = 1000) -> Counter:
    return Counter("intel-rapl:0", "package-0", microjoules, reach)


@pytest.mark.parametrize(
    ("before", "after", "microjoules"), [(100, 250, 150), (250, 250, 0), (900, 50, 150), (1000, 0, 0)]
)
def test_energy_between_two_readings(before, after, microjoules):
    assert used(at(before), at(after)) == microjoules


@pytest.mark.parametrize("reach", [0, 500])
def test_a_counter_that_goes_back_without_a_wrap_says_nothing(reach):
    assert used(at(900, reach), at(50, reach)) is None


def test_power_is_over_the_time_since_the_last_reading(tree, meter):
    tree.zone("intel-rapl:0", "package-0", 1_000_000)
    [first] = meter.read(100.0)
    assert (first.joules, first.watts) == (0.0, None)
    tree.zone("intel-rapl:0", "package-0", 201_000_000)
    [second] = meter.read(110.0)
    assert (second.joules, second.watts) == (200.0, 20.0)


def test_a_wrap_is_counted_through(tree, meter):
    tree.zone("intel-rapl:0", "package-0", 262_143_000_000)
    meter.read(0.0)
    tree.zone("intel-rapl:0", "package-0", 671_150)
    [zone] = meter.read(1.0)
    assert zone.joules == pytest.approx(1.0)


def test_packages_and_memory_are_summed_and_what_is_in_them_is_not(tree, meter):
    names = {
        "intel-rapl:0": "package-0", "intel-rapl:0:0": "core", "intel-rapl:0:1": "uncore",
        "intel-rapl:0:2": "dram", "intel-rapl:1": "package-1", "intel-rapl:2": "psys",
        "intel-rapl-mmio:0": "package-0",
    }  # fmt: skip
    for zone, name in names.items():
        tree.zone(zone, name, 0)
    (tree.zones / "intel-rapl").mkdir()
    meter.read(0.0)
    for zone, name in names.items():
        tree.zone(zone, name, 10_000_000)
    zones = meter.read(1.0)
    assert [zone.zone for zone in zones] == [
        "intel-rapl:0", "intel-rapl:0:0", "intel-rapl:0:1", "intel-rapl:0:2", "intel-rapl:1", "intel-rapl:2",
    ]  # fmt: skip
    assert total_watts(zones) == 30.0 and total_joules(zones) == 30.0


def test_a_node_without_counters_is_said_once(tree, meter, notes):
    assert meter.read(0.0) == [] == meter.read(1.0)
    assert len(notes) == 1 and "No such file or directory: this node's energy is not known" in notes[0]
    assert total_watts([]) is None and total_joules([]) is None


def test_no_zones_is_said(tree, meter, notes):
    tree.zones.mkdir(parents=True)
    assert meter.read(0.0) == []
    assert "no intel-rapl zones" in notes[0]


def test_a_counter_that_cannot_be_read_is_left_out_and_the_others_are_not(tree, meter, notes):
    tree.zone("intel-rapl:0", "package-0", 5)
    bad = tree.zone("intel-rapl:1", "package-1", 5) / "energy_uj"
    bad.unlink()
    bad.symlink_to("/proc/self/mem")  # reading there fails, also for root
    assert [zone.name for zone in meter.read(0.0)] == ["package-0"]
    meter.read(1.0)
    assert len(notes) == 1 and "intel-rapl:1/energy_uj: cannot be read: Input/output error" in notes[0]


def test_a_counter_for_root_alone_says_so():
    directory = Path(tempfile.mkdtemp())
    zone = directory / "class/powercap/intel-rapl:0"
    zone.mkdir(parents=True)
    (zone / "energy_uj").write_text("5\n")
    (zone / "energy_uj").chmod(0o400)
    directory.chmod(0o755)
    told: list[str] = []
    me = os.geteuid()
    if me != 0:
        (zone / "energy_uj").chmod(0)
    try:
        if me == 0:
            os.seteuid(65534)
        assert Meter(directory, note=told.append).read(0.0) == []
    finally:
        os.seteuid(me)
        shutil.rmtree(directory)
    [text] = told
    assert "Permission denied (only root may read it since Linux 5.10): its energy is not reported" in text


@given(
    start=st.integers(0, 999),
    steps=st.lists(st.integers(0, 999), max_size=30),
    reach=st.just(1000),
)
def test_any_number_of_wraps_is_summed_as_long_as_readings_are_close(start, steps, reach):
    total, counter = start, at(start, reach)
    energy = 0
    for step in steps:
        total += step
        after = at(total % reach, reach)
        more = used(counter, after)
        assert more is not None
        energy += more
        counter = after
    assert energy == sum(steps)
