"""A journal that was damaged in its middle: check finds it, the daemon says so and is not started again."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner
from commandline import Headway

from headway.cli import cli
from headway.errors import Damaged
from headway.events import NodeDown
from headway.journal import Journal, RunInfo
from headway.model import ClusterDescription

ETC = Path(__file__).parents[3] / "etc"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A journal of some pages, closed in good order: all of it is in the one file."""
    made = tmp_path / "journal.sqlite"
    with Journal.open(made) as journal:
        journal.begin_run(RunInfo("drive", 1.0, "test", "", 0, ClusterDescription.flat(1)))
        for seq in range(100):
            journal.record_events(seq, float(seq), [NodeDown(float(seq), f"node{seq}", "broken " * 20)])
        journal.end_run("stopped")
    return made


def heavily(path: Path) -> None:
    """A page of the middle is overwritten."""
    data = bytearray(path.read_bytes())
    middle = len(data) // 2 // 4096 * 4096
    data[middle : middle + 4096] = b"\xff" * 4096
    path.write_bytes(data)


def lightly(path: Path) -> None:
    """A few bytes of one row: the structure is whole, the row cannot be read."""
    data = bytearray(path.read_bytes())
    at = data.index(b'"node":"node50"')
    data[at : at + 4] = b"\x1b]0;"
    path.write_bytes(data)


def bluntly(path: Path) -> None:
    """The second half is gone."""
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


@pytest.mark.parametrize("damage", [heavily, lightly, bluntly])
def test_check_finds_the_damage(path: Path, damage: Callable[[Path], None], tmp_path: Path) -> None:
    config = tmp_path / "site.yaml"
    config.write_text(yaml.safe_dump({"mode": "dry-run", "journal": str(path)}))
    wide = {"COLUMNS": "300"}
    assert "1 run" in CliRunner().invoke(cli, ["check", "-c", str(config)], env=wide).output
    damage(path)
    done = CliRunner().invoke(cli, ["check", "-c", str(config)], env=wide)
    assert done.exit_code == 1
    assert re.search(r"FAIL +journal .*damaged", done.output)
    assert "A damaged journal" in done.output
    assert "\x1b" not in done.output


@pytest.mark.parametrize("damage", [heavily, lightly, bluntly])
def test_opened_for_writing_it_is_found_before_anything_is_done(
    path: Path, damage: Callable[[Path], None]
) -> None:
    damage(path)
    with pytest.raises(Damaged), Journal.open(path) as journal:
        journal.verify()


def test_damage_that_sqlite_meets_is_called_so(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[4096:] = b"\xff" * (len(data) - 4096)
    path.write_bytes(data)
    with pytest.raises(Damaged, match=r"damaged: .*malformed") as found:
        Journal.open(path)
    assert found.value.exit_code == 3


def test_looking_for_damage_ends_after_its_time(path: Path) -> None:
    with Journal.open(path, read_only=True) as journal:
        assert journal.verify() is True
        assert journal.verify(seconds=0.0) is False


def test_a_directory_that_everybody_can_write_into_is_no_place_for_a_journal(tmp_path: Path) -> None:
    place = tmp_path / "open"
    place.mkdir()
    place.chmod(0o777)
    config = tmp_path / "site.yaml"
    config.write_text(yaml.safe_dump({"mode": "dry-run", "journal": str(place / "journal.sqlite")}))
    done = CliRunner().invoke(cli, ["check", "-c", str(config)], env={"COLUMNS": "200"})
    assert done.exit_code == 1 and "all users can write into" in done.output
    place.chmod(0o1777)
    assert CliRunner().invoke(cli, ["check", "-c", str(config)]).exit_code == 0


def test_a_damaged_journal_s_bytes_do_not_reach_the_terminal(path: Path, headway: Headway) -> None:
    lightly(path)
    done = headway("replay", path)
    assert done.code == 3
    assert "damaged" in done.err and "\x1b" not in done.out + done.err


@pytest.mark.parametrize("unit", sorted(ETC.glob("*/headway.service")))
def test_the_unit_does_not_start_again_what_only_a_person_can_mend(unit: Path) -> None:
    assert re.search(r"^RestartPreventExitStatus=2 3 4$", unit.read_text(), re.MULTILINE)
