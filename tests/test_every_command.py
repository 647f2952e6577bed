"""Every command runs once: here, where everything is installed, and in an installation of the bare wheel."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tomllib
import venv
from pathlib import Path
from typing import Any

import msgspec
import pytest
from every_command import EXPECTED, LINES, NO_JSON, commands, json_lines, prepare, unexpected
from waiting import HANG

from headway.cli import _COMMANDS
from headway.cli.as_json import JsonOption, schema_of
from headway.cli.installed import installed_commands
from headway.cli.printed import Printed
from headway.inputs.shipped import shipped

ROOT = Path(__file__).parents[1]
PROGRAM = ROOT / "tests" / "every_command.py"
#: What a wheel is made of.
PARTS = ("pyproject.toml", "README.md", "LICENSE", "framework", "plugins", "adapters", "etc")
#: Modules of extras that the bare wheel must not have for the test to say anything.
EXTRAS = (
    "scipy", "matplotlib", "PIL", "jinja2", "markupsafe", "paramiko", "cryptography", "distributed",
    "pyarrow", "numba", "psycopg", "jsonschema",
)  # fmt: skip

Told = list[dict[str, Any]]


def told(python: str | Path, folder: Path, *more: str) -> Told:
    """How every line ended in that installation."""
    prepare(folder)
    done = subprocess.run(
        [python, PROGRAM, *more], cwd=folder, capture_output=True, text=True, timeout=HANG, check=True
    )
    found: Told = json.loads(done.stdout)
    return found


def cannot(why: str) -> None:
    """Skip what needs a package index where there is none; with CI=true that is a failure."""
    (pytest.fail if os.environ.get("CI", "").lower() == "true" else pytest.skip)(why)


def pip_of(python: str | Path, *words: str) -> None:
    done = subprocess.run(
        [python, "-m", "pip", "--disable-pip-version-check", "--quiet", *words],
        capture_output=True,
        text=True,
    )
    if done.returncode:
        cannot(f"pip {' '.join(words)}: {done.stderr[-500:]}")


def made(folder: Path, *wanted: str) -> Path:
    """A virtual environment in which these are installed."""
    venv.create(folder, with_pip=True)
    pip_of(folder / "bin" / "python", "install", *wanted)
    return folder


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Told:
    return told(sys.executable, tmp_path_factory.mktemp("here"))


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    # Of a copy: a build writes into the folder that it is made of.
    folder, copy = tmp_path_factory.mktemp("wheel"), tmp_path_factory.mktemp("copy")
    for part in PARTS:
        (shutil.copytree if (ROOT / part).is_dir() else shutil.copy)(ROOT / part, copy / part)
    pip_of(sys.executable, "wheel", "--no-deps", "--wheel-dir", str(folder), str(copy))
    (found,) = folder.glob("headway-*.whl")
    return found


@pytest.fixture(scope="module")
def environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with the bare wheel and what it requires, nothing else."""
    folder = made(tmp_path_factory.mktemp("bare"), str(wheel))
    there = f"import importlib.util as u; print([m for m in {EXTRAS!r} if u.find_spec(m)])"
    found = subprocess.run(
        [folder / "bin" / "python", "-c", there], capture_output=True, text=True, check=True
    )
    assert found.stdout.strip() == "[]"
    return folder


@pytest.fixture(scope="module")
def bare(environment: Path, tmp_path_factory: pytest.TempPathFactory) -> Told:
    return told(environment / "bin" / "python", tmp_path_factory.mktemp("work"))


def test_the_table_has_every_command() -> None:
    assert {line.split()[0] for line in LINES} == {*_COMMANDS, *installed_commands()}


def test_every_command_ends_as_it_should(here: Told) -> None:
    ended = {one["line"]: (one["code"], one["said"][-400:]) for one in here}
    wrong = {line: end for line, end in ended.items() if end[0] != EXPECTED.get(line, 0)}
    assert not wrong


def test_every_command_prints_json_or_it_is_known_why_not() -> None:
    assert {words for words, command in commands() if schema_of(command) is None} == set(NO_JSON)


def test_with_json_each_prints_one_document_of_its_shape(tmp_path: Path) -> None:
    def finite(constant: str) -> None:
        raise ValueError(f"{constant} is no JSON")

    wrong: dict[str, object] = {}
    for (line, command), one in zip(json_lines(), told(sys.executable, tmp_path, "--json"), strict=True):
        assert one["line"] == line
        if one["code"] != EXPECTED.get(line.removesuffix(" --json"), 0):
            wrong[line] = one["said"][-400:]
        elif line.endswith("--json") and (one["code"] == 0 or one["out"]):
            (shape,) = [one.type_printed() for one in command.params if isinstance(one, JsonOption)]
            try:
                assert one["out"].endswith("\n") and one["out"].count("\n") == 1
                json.loads(one["out"], parse_constant=finite)
                found = msgspec.json.decode(one["out"], type=shape)
                if isinstance(found, Printed) and type(found) is not Printed:
                    numbers = set(type(found).__struct_fields__) - {"sentences", "tables", "forecast"}
                    assert all(getattr(found, name) for name in numbers), "a number was not noted"
            except (AssertionError, ValueError) as error:
                wrong[line] = (error, one["out"][:400])
    assert not wrong


def test_clean_input_is_printed_as_it_is(here: Told) -> None:
    """Nothing in it is taken for foreign: not the thin blanks between thousands either."""
    assert not [one["line"] for one in here if "\N{REPLACEMENT CHARACTER}" in one["said"]]
    assert any("\N{NARROW NO-BREAK SPACE}" in one["said"] for one in here), "no figure has five digits"


@pytest.mark.long
def test_the_bare_wheel_runs_every_command_or_names_the_extra(bare: Told) -> None:
    assert not unexpected(bare)


@pytest.mark.long
@pytest.mark.parametrize(
    "line", ["plugins", "generate", "estimates", "dry-run --workload month --policy fcfs", "analyze log.swf"]
)
def test_the_bare_wheel_needs_no_extra_for(bare: Told, line: str) -> None:
    found = next(one for one in bare if one["line"] == line)
    assert found["code"] == 0, found["said"]


@pytest.mark.long
def test_nothing_of_the_bare_wheel_ends_in_a_traceback(bare: Told) -> None:
    assert not [one for one in bare if one["code"] == -1 or "Traceback" in one["said"]]


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="the lowest versions are those of Python 3.11")
def test_the_lowest_versions_that_are_allowed_run_every_command(wheel: Path, tmp_path: Path) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    allowed = [*project["dependencies"], *extras["report"], *extras["security"], *extras["api"]]
    assert all(">=" in requirement for requirement in allowed)
    lowest = tmp_path / "lowest.txt"
    lowest.write_text("\n".join(requirement.replace(">=", "==") for requirement in allowed), encoding="utf-8")
    folder = made(tmp_path / "venv", f"{wheel}[report,security,api]", "-c", str(lowest))
    (tmp_path / "work").mkdir()
    ended = {one["line"]: one for one in told(folder / "bin" / "python", tmp_path / "work")}
    assert not [one for line, one in ended.items() if one["code"] != EXPECTED.get(line, 0)]


@pytest.mark.long
def test_the_wheel_brings_what_the_guide_and_check_name(environment: Path) -> None:
    there = environment / "share" / "headway" / "etc"
    for file in (ROOT / "etc").rglob("*"):
        brought = there / file.relative_to(ROOT / "etc")
        assert brought.exists(), f"{brought.name} is not in the wheel: tool.setuptools.data-files"
        assert os.access(brought, os.X_OK) == os.access(file, os.X_OK)
    asked = "from headway.inputs.shipped import shipped; print(shipped('slurm/job_submit.lua'))"
    found = subprocess.run(
        [environment / "bin" / "python", "-c", asked], capture_output=True, text=True, check=True
    )
    assert Path(found.stdout.strip()) == (there / "slurm" / "job_submit.lua").resolve()


def test_a_checkout_names_its_own_files() -> None:
    assert shipped("slurm/job_submit.lua") == ROOT / "etc" / "slurm" / "job_submit.lua"
