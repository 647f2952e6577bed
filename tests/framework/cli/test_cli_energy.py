"""Power and energy from the command line: profiles, the energy-aware policies, and what users get wrong."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from commandline import Headway

ALL_SIXTEEN = (
    "fcfs", "sjf", "ljf", "minet", "maxet", "fcfs-ff", "sjf-ff", "ljf-ff", "minet-ff", "maxet-ff",
    "window-k", "easy", "k-reserved", "sjf-ee", "ljf-ee", "ljfff-ee",
)  # fmt: skip

PROFILE = """
name: mine
calibrate: {class: thin, watts: 5}
classes:
  - name: thin
    frequency: 2.0e+9
    levels: {0: {frequency: 1.0, voltage: 1.1}, 1: {frequency: 0.5, voltage: 0.9}}
    idle_power: 1
    node_power: 50
    sleep: {power: 5, enter: {seconds: 5, joules: 100}, leave: {seconds: 10, joules: 900}}
  - name: fat
    frequency: 3.0e+9
    levels: {0: {frequency: 1.0, voltage: 1.2}}
"""


@pytest.fixture
def profile(tmp_path: Path) -> Path:
    path = tmp_path / "mine.yaml"
    path.write_text(PROFILE)
    return path


def site(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "site.yaml"
    path.write_text(f"mode: dry-run\n{text}")
    return path


def metrics(directory: Path) -> dict:
    return json.loads((directory / "metrics.json").read_text())


def integral(directory: Path, column: str) -> float:
    """Joules under a column of ``power.csv``, until the run's end."""
    with open(directory / "power.csv", encoding="utf-8") as stream:
        rows = [(float(row["time"]), float(row[column])) for row in csv.DictReader(stream)]
    ends = [time for time, _ in rows[1:]] + [metrics(directory)["system"]["end"]]
    return sum((end - time) * watts for (time, watts), end in zip(rows, ends, strict=True))


@pytest.mark.traces
@pytest.mark.parametrize("policy", ALL_SIXTEEN)
def test_every_policy_over_a_real_trace_with_energy(
    headway: Headway, trace_dir: Path, tmp_path: Path, policy: str
) -> None:
    trace, out = next(trace_dir.glob("KTH-SP2*")), tmp_path / "out"
    ran = headway(
        "dry-run", "--trace", trace, "--first", 300, "--policy", policy, "--energy", "present-day",
        "--out", out,
    )  # fmt: skip
    assert ran.code == 0, ran.err
    assert "energy of jobs" in ran.out and "peak power" in ran.out
    found = metrics(out)
    energy = found["energy"]
    assert found["counts"]["finished"] == found["counts"]["jobs"] > 250
    assert energy["total"] == pytest.approx(energy["busy"] + energy["idle"] + energy["asleep"])
    assert integral(out, "power") == pytest.approx(energy["total"])
    assert integral(out, "busy_power") == pytest.approx(energy["busy"])
    with open(out / "jobs.csv", encoding="utf-8") as stream:
        jobs = list(csv.DictReader(stream))
    assert sum(float(job["energy"] or 0) for job in jobs) == pytest.approx(energy["busy"])
    assert "Power over time" in (out / "report.html").read_text()
    if policy.endswith("-ee"):
        assert any(job["frequency"] for job in jobs), "some job has time for a lower frequency"
        assert set(found["extra"]["dvfs"]) == {"starts_by_level", "deadlines_met", "deadlines_missed"}


def test_on_nodes_each_node_has_its_energy(
    headway: Headway, trace: Path, tmp_path: Path, profile: Path
) -> None:
    config = site(
        tmp_path,
        "emulation: {nodes: [{count: 3, processors: 4}, {count: 1, processors: 4, prefix: f, class: fat}]}\n"
        f"plugins: [easy, power-down: {{idle: 60}}]\nenergy: {{profile: {profile.name}}}\n",
    )
    ran = headway("dry-run", "-c", config, "--trace", trace, "--out", tmp_path / "out")
    assert ran.code == 0, ran.err
    energy = metrics(tmp_path / "out")["energy"]
    assert integral(tmp_path / "out", "power") == pytest.approx(energy["total"])
    with open(tmp_path / "out" / "nodes.csv", encoding="utf-8") as stream:
        nodes = list(csv.DictReader(stream))
    assert [node["class"] for node in nodes] == ["thin", "thin", "thin", "fat"]
    assert sum(float(node["energy"]) for node in nodes) == pytest.approx(energy["total"])
    assert energy["by_pool"] == {"pool": pytest.approx(energy["total"])}


def test_a_power_cap_is_kept_and_its_figures_are_there(headway: Headway, trace: Path, tmp_path: Path) -> None:
    config = site(tmp_path, "plugins: [easy, power-cap: {watts: 60}]\nenergy: {profile: present-day}\n")
    ran = headway("dry-run", "-c", config, "--trace", trace, "--out", tmp_path / "out")
    assert ran.code == 0, ran.err
    found = metrics(tmp_path / "out")
    assert found["energy"]["peak_power"] <= 60.000001
    assert found["extra"]["power-cap"]["starts_slowed"] > 0
    assert found["extra"]["power-cap"]["seconds_above_cap"] == 0


def test_a_profile_that_is_not_calibrated_gives_figures_without_units(
    headway: Headway, trace: Path, tmp_path: Path
) -> None:
    (tmp_path / "relative.yaml").write_text(PROFILE.replace("calibrate: {class: thin, watts: 5}", ""))
    ran = headway(
        "dry-run", "--trace", trace, "--energy", tmp_path / "relative.yaml", "--out", tmp_path / "out"
    )
    assert ran.code == 0, ran.err
    assert metrics(tmp_path / "out")["energy"]["absolute"] is False
    shown = [line for line in ran.out.splitlines() if line.strip().startswith(("energy", "peak power"))]
    assert shown and not any(unit in line for line in shown for unit in (" kJ", " J", "kWh", " W", " kW"))


def test_the_option_goes_before_the_configured_profile(
    headway: Headway, trace: Path, tmp_path: Path, profile: Path
) -> None:
    config = site(tmp_path, f"energy: {{profile: {profile.name}}}\n")
    arguments = ("dry-run", "-c", config, "--trace", trace, "--out")
    assert headway(*arguments, tmp_path / "mine").code == 0
    assert metrics(tmp_path / "mine")["energy"]["profile"] == "mine"
    assert headway(*arguments, tmp_path / "theirs", "--energy", "present-day").code == 0
    assert metrics(tmp_path / "theirs")["energy"]["profile"] == "present-day"


def test_a_journal_with_energy_is_replayed(headway: Headway, trace: Path, tmp_path: Path) -> None:
    journal = tmp_path / "run.db"
    ran = headway(
        "dry-run", "--trace", trace, "--policy", "ljfff-ee", "--energy", "present-day", "--journal", journal
    )
    assert ran.code == 0, ran.err
    again = headway("replay", journal)
    assert again.code == 0 and "all decisions are the same" in again.out, again.out


def test_a_copy_of_the_live_queue_has_energy_too(
    headway: Headway, pretended_slurm: Callable[..., Path], tmp_path: Path
) -> None:
    config = pretended_slurm()
    ran = headway(
        "dry-run", "-c", config, "--from-cluster", "--energy", "present-day", "--out", tmp_path / "out"
    )
    assert ran.code == 0, ran.err
    found = metrics(tmp_path / "out")
    assert found["energy"]["profile"] == "present-day" and found["energy"]["total"] > 0
    assert (tmp_path / "out" / "nodes.csv").is_file()


# ---------------------------------------------------------------------- what users get wrong


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--energy", "present-dya"], "--energy: no energy profile is called 'present-dya'"),
        (["--energy", "none.yaml"], "expected a file or one of chandio2014, present-day; found no file"),
        (["--policy", "sjf-ee"], "plugin 'dvfs' needs an energy profile"),
        (["--policy", "dvfs", "--energy", "present-day"], "--policy: expected a policy"),
    ],
)
def test_wrong_options_are_named(headway: Headway, trace: Path, arguments: list[str], said: str) -> None:
    ran = headway("dry-run", "--trace", trace, *arguments)
    assert ran.code == 2
    assert said in " ".join(ran.err.split())


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("1: {frequency: 0.5", "2: {frequency: 0.5", "level 1 is missing"),
        ("frequency: 0.5, voltage: 0.9", "frequency: 0.5, voltage: 1.2", "voltages that do not rise"),
        ("frequency: 0.5", "frequency: 1.0", "frequencies that fall"),
        ("watts: 5", "watts: -5", "calibrate.watts"),
        ("class: thin", "class: thick", "one of the classes thin, fat, found 'thick'"),
        ("idle_power", "idel_power", "classes[0].idel_power: unknown key"),
        ("name: mine", "name: [", "not valid YAML"),
    ],
)
def test_a_wrong_profile_is_named_with_its_place(
    headway: Headway, trace: Path, profile: Path, old: str, new: str, said: str
) -> None:
    profile.write_text(PROFILE.replace(old, new, 1))
    ran = headway("dry-run", "--trace", trace, "--energy", profile)
    assert ran.code == 2
    told = " ".join(ran.err.split())
    assert "mine.yaml" in told.replace(" ", "") and said in told


NODES = "emulation: {nodes: [{count: 4, processors: 4}]}\n"
PRESENT = "energy: {profile: present-day}\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (NODES.replace("4}", "4, class: gpu}") + PRESENT, "node n1: no class of profile 'present-day'"),
        (NODES + "energy: {profile: present-day, classes: {n*: gpu}}\n", "energy.classes: n*: no class of"),
        ("plugins: [easy, dvfs]\n", "plugins[1]: plugin 'dvfs' needs an energy profile"),
        ("plugins: [easy, power-cap: {watts: 5}]\n", "plugin 'power-cap' needs an energy profile"),
        ("plugins: [easy, power-down]\n", "plugin 'power-down' needs PowerDown, PowerUp"),
        (
            "plugins: [easy, power-down]\n" + PRESENT,
            "plugin 'power-down': only nodes can sleep, found no pool of nodes but 'pool'",
        ),
        (
            NODES + "plugins: [easy, power-down]\nenergy: {profile: chandio2014}\n",
            "no class of the energy profile 'chandio2014' has a sleep state",
        ),
        (
            "plugins: [easy, power-cap: {pools: {gpu: 9}}]\n" + PRESENT,
            "plugin 'power-cap': pools: no pool is called 'gpu'",
        ),
        (
            PRESENT + "plugins: [easy, power-cap: {prices: {file: none.csv, caps: [{above: 1, watts: 5}]}}]",
            "none.csv cannot be read: No such file or directory",
        ),
        ("plugins: [easy, power-cap: {}]\n" + PRESENT, "at least one of watts, pools, windows, prices"),
        ("plugins: [easy, dvfs: {slack: 0.5}]\n" + PRESENT, "dvfs: slack"),
        ("energy: {profil: present-day}\n", "energy.profil: unknown key. Did you mean 'profile'?"),
    ],
)  # fmt: skip
def test_a_wrong_configuration_is_named_with_its_place(
    headway: Headway, trace: Path, tmp_path: Path, text: str, said: str
) -> None:
    ran = headway("dry-run", "-c", site(tmp_path, text), "--trace", trace)
    assert ran.code == 2
    assert said in " ".join(ran.err.split()), ran.err
