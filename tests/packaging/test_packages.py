"""The Debian package and the container file agree with ``pyproject.toml``; they are built on request."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest
from waiting import HANG

ROOT = Path(__file__).parents[2]
DEBIAN = ROOT / "packaging" / "debian"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
#: Library of a requirement -> its Debian package, where that is not ``python3-NAME``.
CALLED = {"pyjwt": "python3-jwt", "pyyaml": "python3-yaml"}
#: Debian 13 has no package of it.
NOT_IN_DEBIAN = {"pyarrow"}
#: Not for those that use headway: what is done in a checkout.
NOT_OFFERED = {"docs", "test"}


def packages_of(field: str) -> dict[str, str]:
    """Package -> its version, of a field of ``debian/control``."""
    text = (DEBIAN / "control").read_text(encoding="utf-8")
    (block,) = re.findall(rf"^{field}:\n((?: .*\n)+)", text, re.MULTILINE)
    found = re.findall(r"^ ([a-z0-9.+-]+)(?: \(>= (?:\d+:)?([\d.]+)\))?,$", block, re.MULTILINE)
    return dict(found)


def required(requirement: str) -> tuple[str, str]:
    """The Debian package of a requirement, and its lowest version."""
    found = re.match(r"([\w-]+)(?:\[\w+\])?(?:>=([\d.]+))?", requirement)
    assert found is not None
    return CALLED.get(found[1], f"python3-{found[1]}"), found[2] or ""


def extras() -> set[tuple[str, str]]:
    return {
        required(one)
        for name, requirements in PROJECT["optional-dependencies"].items()
        if name not in NOT_OFFERED
        for one in requirements
        if re.match(r"[\w-]+", one)[0] not in NOT_IN_DEBIAN  # type: ignore[index]
    }


def test_the_changelog_has_the_version_of_the_project() -> None:
    first = (DEBIAN / "changelog").read_text(encoding="utf-8").splitlines()[0]
    assert first.startswith(f"headway ({PROJECT['version']}) ")


def test_what_headway_requires_is_there_when_the_package_is_built() -> None:
    """Its commands are called then, for their manual pages."""
    needed = dict(required(one) for one in PROJECT["dependencies"])
    assert needed.items() <= packages_of("Build-Depends").items()


def test_each_library_of_an_extra_is_recommended_or_suggested() -> None:
    offered = {**packages_of("Recommends"), **packages_of("Suggests")}
    assert extras() <= set(offered.items())


def test_the_readme_of_the_package_names_each_extra() -> None:
    text = (DEBIAN / "README.Debian").read_text(encoding="utf-8")
    assert {name for name in PROJECT["optional-dependencies"] if f"`{name}`" not in text} == NOT_OFFERED


def test_units_have_different_names() -> None:
    """The package has all of them in one folder."""
    names = [unit.name for kind in ("service", "timer") for unit in ROOT.glob(f"etc/*/*.{kind}")]
    assert "headway.service" in names
    assert len(names) == len(set(names))


def test_the_container_runs_as_no_administrator_on_plain_debian() -> None:
    text = (ROOT / "packaging" / "Containerfile").read_text(encoding="utf-8")
    assert re.findall(r"^USER (.*)$", text, re.MULTILINE) == ["headway"]
    (base,) = re.findall(r"^ARG BASE=(.*)$", text, re.MULTILINE)
    assert re.fullmatch(r"debian:[\w-]+", base)
    assert set(re.findall(r"^FROM (\S+)", text, re.MULTILINE)) == {"${BASE}"}


@pytest.mark.campaign
def test_the_package_is_built_and_lintian_finds_nothing(tmp_path: Path) -> None:
    if shutil.which("dpkg-buildpackage") is None or shutil.which("lintian") is None:
        pytest.skip("needs dpkg-buildpackage, debhelper and lintian")
    built = subprocess.run(
        [ROOT / "packaging" / "build-deb", tmp_path], capture_output=True, text=True, timeout=HANG
    )
    if "unmet build dependencies" in built.stderr:
        pytest.skip(f"needs Debian 13: {built.stderr[-300:]}")
    assert built.returncode == 0, built.stderr[-3000:]
    (changes,) = tmp_path.glob("*.changes")
    said = subprocess.run(
        ["lintian", "--fail-on", "error,warning", "--allow-root", changes], capture_output=True, text=True
    )
    assert said.returncode == 0, said.stdout
    assert said.stdout == ""


@pytest.mark.campaign
def test_source_distribution_and_wheel_pass_twine(tmp_path: Path) -> None:
    """Downloads ``build`` and ``twine``."""
    environment = {key: value for key, value in os.environ.items() if key != "MAKEFLAGS"}
    made = subprocess.run(["make", "dist"], cwd=ROOT, capture_output=True, text=True, env=environment)
    assert made.returncode == 0, made.stdout + made.stderr
    assert made.stdout.count("PASSED") == 2
    (source,) = (ROOT / "dist" / "python").glob("*.tar.gz")
    (wheel,) = (ROOT / "dist" / "python").glob("*.whl")
    with tarfile.open(source) as archive:
        inside = {name.partition("/")[2] for name in archive.getnames()}
    assert {"packaging/build-deb", "packaging/debian/rules", "packaging/Containerfile"} <= inside
    with zipfile.ZipFile(wheel) as archive:
        assert "headway/workload/samples/fortnight.swf.gz" in archive.namelist()
