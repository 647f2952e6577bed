"""Which configuration a command takes if nobody names one."""

from __future__ import annotations

from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from headway.cli import asking, common
from headway.errors import UserError


@click.command()
@common.required_config_option
def shows(config_path: Path) -> None:
    click.echo(config_path)


@pytest.fixture
def system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The system's configuration, which is not there yet; the test stands in an empty directory."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("HEADWAY_CONFIG", raising=False)
    found = tmp_path / "etc.yaml"
    assert (Path("/etc/headway/headway.yaml"),) == common.CONFIGS
    monkeypatch.setattr(common, "CONFIGS", (found,))
    return found


def taken(*arguments: str) -> str:
    return CliRunner().invoke(shows, arguments).output.strip()


def test_the_configuration_that_is_named_goes_before_the_systems(
    system: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    system.touch()
    assert taken() == str(system)
    monkeypatch.setenv("HEADWAY_CONFIG", "mine.yaml")
    assert taken() == "mine.yaml"
    assert taken("-c", "given.yaml") == "given.yaml"


def test_where_there_is_none_it_says_where_it_looked(system: Path) -> None:
    assert f"found none of {system}" in " ".join(taken().split()) and "HEADWAY_CONFIG" in taken()
    assert "Default: HEADWAY_CONFIG" in taken("--help")


def test_a_file_that_a_user_left_in_the_directory_is_not_taken(system: Path, tmp_path: Path) -> None:
    Path("headway.yaml").write_text(f"service: {{socket: {tmp_path}/mine.sock}}")
    assert f"found none of {system}" in " ".join(taken().split())
    assert common.readable_config() is None


def test_a_user_without_a_readable_configuration_asks_at_the_units_socket(
    system: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    socket = tmp_path / "headway.sock"
    monkeypatch.setattr(asking, "SOCKET", socket)
    monkeypatch.setattr(common.os, "access", lambda path, mode: path != system and Path(path).exists())
    system.write_text("service: {socket: /run/other.sock, timeout: 5}")
    with pytest.raises(UserError, match=f"a daemon at {socket}; found no configuration that can be read"):
        asking.daemon_of(None)
    socket.touch()
    assert asking.daemon_of(None) == (socket, 30.0)
    assert asking.daemon_of(system) == (Path("/run/other.sock"), 5.0)
