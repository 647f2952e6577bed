"""Energy profiles: what is wrong in one is said with file, place, expected and found."""

from pathlib import Path

import pytest
import yaml
from building import alike, node_cluster

from headway.energy.profiles import load_profile, profile_names, with_energy
from headway.errors import UserError

GOOD = {
    "name": "mine",
    "classes": [
        {
            "name": "thin",
            "frequency": 3e9,
            "capacitance": 1e-9,
            "levels": {0: {"frequency": 1.0, "voltage": 1.3}, 1: {"frequency": 0.9, "voltage": 1.2}},
        }
    ],
}


def written(tmp_path: Path, **changes: object) -> str:
    data = yaml.safe_load(yaml.safe_dump(GOOD))
    data["classes"][0].update(changes)
    path = tmp_path / "mine.yaml"
    path.write_text(yaml.safe_dump(data))
    return str(path)


def refusal(path: str) -> str:
    with pytest.raises(UserError) as error:
        load_profile(path)
    return str(error.value)


def test_installed_profiles_load_by_name() -> None:
    assert {"chandio2014", "present-day"} <= set(profile_names())
    for name in profile_names():
        assert load_profile(name).name == name


def test_the_shipped_files_are_those_of_etc() -> None:
    etc = Path(__file__).parents[3] / "etc" / "energy"
    for name in ("chandio2014", "present-day"):
        assert load_profile(str(etc / f"{name}.yaml")) == load_profile(name)


def test_a_file_of_ones_own(tmp_path: Path) -> None:
    profile = load_profile(written(tmp_path))
    assert profile.absolute
    assert profile.classes[0].levels[1].frequency == pytest.approx(2.7e9)


def test_a_file_is_found_beside_the_configuration(tmp_path: Path) -> None:
    written(tmp_path)
    assert load_profile("mine.yaml", beside=tmp_path).name == "mine"


def test_without_calibration_figures_are_relative(tmp_path: Path) -> None:
    profile = load_profile(written(tmp_path, capacitance=None))
    assert not profile.absolute


def test_a_missing_level(tmp_path: Path) -> None:
    levels = {0: {"frequency": 1.0, "voltage": 1.3}, 2: {"frequency": 0.8, "voltage": 1.1}}
    said = refusal(written(tmp_path, levels=levels))
    assert said.endswith(
        "mine.yaml: classes[0].levels: expected levels 0 to 2 without a gap (level 1 is missing), found 0, 2"
    )


def test_a_voltage_that_rises_as_the_frequency_falls(tmp_path: Path) -> None:
    levels = {0: {"frequency": 1.0, "voltage": 1.2}, 1: {"frequency": 0.9, "voltage": 1.3}}
    said = "expected voltages that do not rise as frequencies fall, found 1.3 V at level 1 after 1.2 V"
    assert said in refusal(written(tmp_path, levels=levels))


def test_a_frequency_that_rises(tmp_path: Path) -> None:
    levels = {0: {"frequency": 0.9, "voltage": 1.3}, 1: {"frequency": 1.0, "voltage": 1.2}}
    assert "fall from level to level, found 1 at level 1 after 0.9" in refusal(
        written(tmp_path, levels=levels)
    )


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"levels": {}}, "classes[0].levels"),
        ({"frequency": -1}, "classes[0].frequency"),
        ({"idle_power": -3}, "classes[0].idle_power"),
        ({"speed": 0}, "classes[0].speed"),
        ({"static_power": float("inf")}, "classes[0].static_power: expected a finite number, found inf"),
        ({"capacitance": float("inf")}, "classes[0].capacitance: expected a finite number, found inf"),
        ({"colour": "red"}, "classes[0].colour: unknown key"),
        ({"sleep": {"power": 5}}, "classes[0].sleep.enter: expected a value, found none"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, changes: dict[str, object], said: str) -> None:
    assert said in refusal(written(tmp_path, **changes))


def test_a_level_that_is_there_twice(tmp_path: Path) -> None:
    path = tmp_path / "twice.yaml"
    path.write_text("classes:\n- levels:\n    0: {voltage: 1.3}\n    0: {voltage: 1.2}\n")
    assert "twice.yaml, line 4, column 5: not valid YAML: the key '0' is there already, in line 3" in refusal(
        str(path)
    )


def test_a_class_that_is_calibrated_must_exist(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(yaml.safe_dump({**GOOD, "calibrate": {"class": "fat", "watts": 40}}))
    assert "one of the classes thin, found 'fat'" in refusal(str(path))


def test_a_name_that_is_not_installed_and_a_file_that_is_not_there(tmp_path: Path) -> None:
    assert "no energy profile is called 'chandio'. Did you mean 'chandio2014'?" in refusal("chandio")
    assert "found no file" in refusal(str(tmp_path / "none.yaml"))


def test_a_file_that_is_no_yaml(tmp_path: Path) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text("a: [1")
    assert "not valid YAML" in refusal(str(path))


def test_an_unknown_class_is_refused() -> None:
    profile = load_profile("chandio2014")
    with pytest.raises(UserError, match="no class of profile 'chandio2014' is called 'IV'"):
        with_energy(node_cluster(*alike(1, 1)), profile, {"*": "IV"})
    with pytest.raises(UserError, match="node n0: no class"):
        with_energy(node_cluster(*alike(1, 1, node_class="V")), profile)
