"""Traces of our own that come with headway: ``sample:NAME``, wherever a trace is read."""

from __future__ import annotations

import gzip
import shlex
from pathlib import Path

import pytest

from headway.cli import main
from headway.config import load_config
from headway.errors import UserError
from headway.experiment.definition import load_campaign
from headway.workload import read_trace
from headway.workload.samples import located, names


@pytest.mark.parametrize("name", names())
def test_a_sample_is_what_its_header_says(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its note is the command that draws it again, but for the version in its header."""
    monkeypatch.chdir(tmp_path)
    shipped = gzip.decompress(located(name).read_bytes()).decode()
    (note,) = [line for line in shipped.splitlines() if "made by: headway " in line]
    main([*shlex.split(note.partition("made by: headway ")[2]), "-o", "again.swf"])
    made = Path("again.swf").read_text(encoding="utf-8")

    def without_version(text: str) -> list[str]:
        return [line for line in text.splitlines() if not line.startswith("; Computer: ")]

    assert without_version(made) == without_version(shipped)


def test_samples_are_small() -> None:
    assert names() == ["sample:fortnight"]
    assert sum(located(name).stat().st_size for name in names()) < 50_000


def test_a_sample_is_read_where_a_trace_is() -> None:
    assert len(read_trace("sample:fortnight").records) == 1509


def test_an_unknown_sample_is_named_with_what_there_is() -> None:
    with pytest.raises(UserError, match=r"^sample:fortnite: no such sample.*Did you mean 'sample:fort"):
        read_trace("sample:fortnite")


def test_a_file_of_that_name_is_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    own = Path("sample:fortnight")
    own.write_text("; MaxProcs: 8\n1 0 -1 20 1 -1 -1 1 60 -1 1 1 1 1 1 1 -1 -1\n", encoding="utf-8")
    assert len(read_trace(own).records) == 1


def test_a_configuration_names_a_sample(tmp_path: Path) -> None:
    site = tmp_path / "site.yaml"
    text = "mode: dry-run\nemulation: {trace: 'sample:fortnight'}\nplugins: [easy]\n"
    site.write_text(text, encoding="utf-8")
    assert load_config(site).trace_path() == located("sample:fortnight")


def test_a_campaign_names_a_sample(tmp_path: Path) -> None:
    definition = tmp_path / "campaign.yaml"
    text = "processors: 320\npolicies: [fcfs, easy]\nworkloads: [{trace: 'sample:fortnight'}]\n"
    definition.write_text(text, encoding="utf-8")
    (scenario,) = load_campaign(definition).scenarios
    assert scenario.trace == str(located("sample:fortnight"))
    assert "sample:fortnight" in str(scenario)


@pytest.mark.parametrize(
    "line",
    [
        "dry-run --trace sample:fortnight --policy easy",
        "analyze sample:fortnight",
        "convert sample:fortnight out.cwf",
        "estimates fit sample:fortnight -o estimates.yaml",
        "arrivals fit sample:fortnight -o arrivals.yaml",
    ],
)
def test_a_command_takes_a_sample(line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    try:
        main(line.split())
    except SystemExit as end:
        pytest.fail(f"{line}: exit code {end.code}")
