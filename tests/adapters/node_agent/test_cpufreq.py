"""A processor's clock is limited as asked, and given back as it was."""

from __future__ import annotations

import fcntl
import json
import os
from pathlib import Path

import pytest
from fake_sysfs import Tree
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.errors import Failure, UserError
from headway_adapters.node_agent import cpufreq, sysfs
from headway_adapters.node_agent.cpufreq import MAX, MIN, SPEED, Clock

LEVELS = (3_000_000, 2_700_000, 2_400_000, 2_100_000, 1_200_000)


@pytest.fixture
def notes() -> list[str]:
    return []


@pytest.fixture
def clock(tree, tmp_path, notes) -> Clock:
    return Clock(tree.root, tmp_path / "run" / "state.json", boot_id="this boot", note=notes.append)


def shown(path: Path, file: str) -> str:
    return (path / file).read_text().strip()


# ---------------------------------------------------------------------- reading


def test_clocks_are_read_in_hertz(tree, clock):
    tree.processors(2).policy([0], limits=(1_000_000, 2_000_000))
    first, second = clock.read()
    assert (first.frequency, first.least, first.most, first.governor) == (1e9, 1e9, 2e9, "schedutil")
    assert (second.frequency, second.governor) == (None, None), "cpu 1 has no cpufreq"


def test_an_offline_cpu_is_not_listed(tree, clock):
    tree.processors(4)
    tree.put("online", "0,2-3")
    assert clock.cpus() == (0, 2, 3)


def test_a_directory_that_is_no_sysfs_is_said(tmp_path):
    with pytest.raises(Failure, match="no cpus are listed there; is --sysfs right"):
        Clock(tmp_path, tmp_path / "state").cpus()


# ---------------------------------------------------------------------- writing


@pytest.mark.parametrize(
    ("asked", "written"),
    [(2.4e9, 2_400_000), (2.5e9, 2_400_000), (9e9, 3_000_000), (1e9, 1_200_000), (2.7e9 + 0.1, 2_700_000)],
)
def test_a_frequency_becomes_the_level_at_or_below_it(tree, clock, asked, written):
    policy = tree.processors(1).policy([0], least=1_200_000, levels=LEVELS)
    clock.set_frequency([0], asked)
    assert shown(policy, MAX) == str(written)


@pytest.mark.parametrize(("asked", "written"), [(1.234e9, 1_234_000), (5e9, 3_000_000), (1e8, 800_000)])
def test_without_levels_it_is_clamped_to_what_the_hardware_can(tree, clock, notes, asked, written):
    policy = tree.processors(1).policy([0])
    clock.set_frequency([0], asked)
    assert shown(policy, MAX) == str(written)
    assert bool(notes) == (written != round(asked / 1e3)), "a clamp is said"


def test_what_was_written_is_told(tree, clock):
    tree.processors(2).policy([0, 1])
    [change] = clock.set_frequency([0, 1], 2e9)
    assert (change.cpus, change.file, change.before, change.after) == ((0, 1), MAX, "3000000", "2000000")
    assert clock.set_frequency([0, 1], 2e9) == [], "the job is in that tier already"


def test_under_the_userspace_governor_the_speed_is_set_too(tree, clock):
    policy = tree.processors(1).policy([0], governor="userspace")
    clock.set_frequency([0], 2e9)
    assert (shown(policy, MAX), shown(policy, SPEED)) == ("2000000", "2000000")
    assert shown(policy, cpufreq.GOVERNOR) == "userspace"


def test_the_lower_limit_goes_down_with_the_upper_one_and_up_again(tree, clock):
    policy = tree.processors(1).policy([0], limits=(2_000_000, 3_000_000))
    clock.set_frequency([0], 1e9)
    assert (shown(policy, MIN), shown(policy, MAX)) == ("1000000", "1000000")
    clock.set_frequency([0], 2.5e9)
    assert (shown(policy, MIN), shown(policy, MAX)) == ("2000000", "2500000")


def test_cpus_that_share_a_clock_are_named(tree, clock, notes):
    tree.processors(4).policy([0, 1, 2])
    clock.set_frequency([0, 1], 2e9)
    assert notes == ["cpus 2 share their clock with 0,1 and change, too"]


def test_a_dry_run_writes_nothing(tree, clock, tmp_path):
    policy = tree.processors(1).policy([0])
    [change] = clock.set_frequency([0], 2e9, dry_run=True)
    assert change.after == "2000000"
    assert shown(policy, MAX) == "3000000" and not (tmp_path / "run").exists()


def test_the_value_that_the_kernel_makes_of_it_is_told(tree, clock, notes, monkeypatch):
    policy = tree.processors(1).policy([0])
    real = sysfs.write
    monkeypatch.setattr(sysfs, "write", lambda path, value: real(path, int(value) // 100_000 * 100_000))
    [change] = clock.set_frequency([0], 1.234e9)
    assert change.after == "1200000"
    assert notes == [
        f"{policy.parent.parent / 'cpu0/cpufreq' / MAX}: the kernel set 1200000 kHz instead of 1234000 kHz"
    ]
    monkeypatch.undo()
    clock.reset()
    assert shown(policy, MAX) == "3000000"


# ---------------------------------------------------------------------- bad input


def test_an_unknown_cpu_is_the_users_mistake(tree, clock):
    tree.processors(2).policy([0, 1])
    with pytest.raises(UserError, match=r"cpu 7: this node has no such cpu online\. Online: 0-1"):
        clock.set_frequency([0, 7], 2e9)


def test_a_tree_without_cpufreq_is_said(tree, clock):
    tree.processors(2)
    assert not clock.has_cpufreq()
    with pytest.raises(Failure, match="no cpufreq driver, as in most virtual machines"):
        clock.set_frequency([0], 2e9)


def test_a_file_that_cannot_be_written_is_named_and_what_was_written_is_given_back(tree, clock):
    policy = tree.processors(1).policy([0], limits=(2_000_000, 3_000_000))
    (policy / MAX).unlink()
    (policy / MAX).symlink_to("/proc/version")  # nobody can write there, not even root
    with pytest.raises(Failure, match="scaling_max_freq: expected a whole number"):
        clock.set_frequency([0], 1e9)
    (policy / MAX).unlink()
    (policy / MAX).write_text("3000000\n")
    os_write = sysfs.write

    def refuse(path, value):
        if path.name == MAX:
            raise Failure(f"{path}: cannot be written: Read-only file system")
        os_write(path, value)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sysfs, "write", refuse)
        with pytest.raises(Failure, match="scaling_max_freq: cannot be written: Read-only file system"):
            clock.set_frequency([0], 1e9)
    assert shown(policy, MIN) == "1000000"
    clock.reset()
    assert (shown(policy, MIN), shown(policy, MAX)) == ("2000000", "3000000")


def test_writing_names_the_file_and_what_the_system_said(tmp_path):
    with pytest.raises(Failure, match="gone: cannot be written: No such file or directory"):
        sysfs.write(tmp_path / "gone", 1)
    assert not (tmp_path / "gone").exists(), "a switch that the kernel does not have is not made"
    with pytest.raises(Failure, match="cannot be written"):
        sysfs.write(Path("/proc/version"), 1)


# ---------------------------------------------------------------------- giving back


def test_reset_gives_back_what_was_there_before_the_first_change(tree, clock, tmp_path):
    policy = tree.processors(1).policy([0], limits=(1_000_000, 2_600_000))
    for frequency in (2e9, 9e8, 3e9):
        clock.set_frequency([0], frequency)
    clock.reset()
    assert (shown(policy, MIN), shown(policy, MAX)) == ("1000000", "2600000")
    assert not (tmp_path / "run" / "state.json").exists()
    assert clock.reset() == []


def test_reset_of_a_job_leaves_the_others(tree, clock):
    tree.processors(2)
    first, second = tree.policy([0]), tree.policy([1])
    clock.set_frequency([0], 2e9, job="1")
    clock.set_frequency([1], 2e9, job="2")
    clock.reset(job="1")
    assert (shown(first, MAX), shown(second, MAX)) == ("3000000", "2000000")


def test_cpus_that_went_to_another_job_are_not_given_back_with_the_first(tree, clock):
    policy = tree.processors(1).policy([0])
    clock.set_frequency([0], 2e9, job="1")
    clock.set_frequency([0], 1e9, job="2")
    assert clock.reset(job="1") == [] and shown(policy, MAX) == "1000000"
    clock.reset(job="2")
    assert shown(policy, MAX) == "3000000"


def test_what_somebody_else_changed_since_is_left_alone(tree, clock, notes):
    policy = tree.processors(1).policy([0])
    clock.set_frequency([0], 2e9)
    (policy / MAX).write_text("1500000\n")
    clock.reset()
    assert shown(policy, MAX) == "1500000"
    assert "another program changed it, so it is left as it is" in notes[-1]


def test_a_cpu_that_went_away_is_no_error(tree, clock, notes):
    tree.processors(2).policy([1])
    clock.set_frequency([1], 2e9)
    (tree.cpus / "cpu1" / "cpufreq").unlink()
    assert clock.reset() == []
    assert "the file is gone" in notes[-1]


def test_the_state_of_an_earlier_boot_is_forgotten(tree, clock, tmp_path):
    policy = tree.processors(1).policy([0])
    clock.set_frequency([0], 2e9)
    again = Clock(tree.root, tmp_path / "run" / "state.json", boot_id="next boot")
    assert again.reset() == [] and shown(policy, MAX) == "2000000"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{", "expected the state of a node agent"),
        (json.dumps({"boot": "this boot", "policies": {"0": {"before": {"../../x": "1"}}}}), "names files"),
        (json.dumps({"boot": "this boot", "policies": {"0": {"before": {MAX: "rm -rf"}}}}), "names files"),
    ],
)
def test_a_state_file_that_no_agent_wrote_changes_nothing(tree, clock, tmp_path, text, says):
    policy = tree.processors(1).policy([0])
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "state.json").write_text(text)
    with pytest.raises(Failure, match=says):
        clock.reset()
    assert shown(policy, MAX) == "3000000"


def test_agents_wait_for_each_other(tree, clock, tmp_path, monkeypatch):
    monkeypatch.setattr(cpufreq, "_LOCK_PATIENCE", 0.1)
    tree.processors(1).policy([0])
    (tmp_path / "run").mkdir()
    held = os.open(tmp_path / "run" / "state.json.lock", os.O_RDWR | os.O_CREAT)
    fcntl.flock(held, fcntl.LOCK_EX)
    with pytest.raises(Failure, match="another node agent has held it too long"):
        clock.set_frequency([0], 2e9)
    os.close(held)
    clock.set_frequency([0], 2e9)


# ---------------------------------------------------------------------- properties


@st.composite
def nodes(draw):
    """Hardware limits, levels or none, present limits, a governor."""
    levels = sorted(draw(st.sets(st.integers(400, 5000), min_size=1, max_size=8)), reverse=True)
    listed = [level * 1000 for level in levels] if draw(st.booleans()) else []
    least, most = levels[-1] * 1000, levels[0] * 1000
    low, high = sorted(draw(st.tuples(*[st.integers(least, most)] * 2)))
    return listed, least, most, (low, high), draw(st.sampled_from(["userspace", "performance"]))


@settings(max_examples=60, deadline=None)
@given(node=nodes(), asked=st.lists(st.floats(1e7, 1e11), min_size=1, max_size=5))
def test_what_is_set_is_read_and_what_is_reset_is_as_before(tmp_path_factory, node, asked):
    directory = tmp_path_factory.mktemp("node")
    tree = Tree(directory / "sys").processors(1)
    levels, least, most, limits, governor = node
    policy = tree.policy([0], least=least, most=most, levels=levels, governor=governor, limits=limits)
    files = {file: shown(policy, file) for file in (MAX, MIN, SPEED, cpufreq.GOVERNOR)}
    clock = Clock(tree.root, directory / "state.json", boot_id="b")
    real = sysfs.write

    def write(path, value):
        real(path, value)
        assert int(shown(policy, MIN)) <= int(shown(policy, MAX)), "the kernel would refuse this"

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sysfs, "write", write)
        for frequency in asked:
            clock.set_frequency([0], frequency)
            [found] = clock.read()
            assert found.most <= max(frequency + 500, least * 1e3), "never faster than asked"
            assert not levels or found.most / 1e3 in levels
            assert found.least == min(limits[0] * 1e3, found.most)
            if governor == "userspace":
                assert float(shown(policy, SPEED)) * 1e3 == found.most
        clock.reset()
    assert {file: shown(policy, file) for file in files} == files
