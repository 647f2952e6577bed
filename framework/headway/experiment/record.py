"""What a campaign's numbers came from: the program, its libraries, the files that were read."""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from headway.experiment.campaign import Campaign
from headway.experiment.execution import Failed
from headway.experiment.facts import digest_of
from headway.inputs.entry_points import entry_points
from headway.plugins import Catalogue, Plugins
from headway.version import __version__

#: Entry points whose packages take part in a run.
_GROUPS = ("headway.adapters", "headway.plugins", "headway.presets")

#: Libraries that numbers may depend on.
_LIBRARIES = ("numpy", "scipy", "numba", "pydantic", "msgspec", "distributed")


@cache
def code_digest() -> str:
    """SHA-256 of the source of headway and of every package with plugins: the same on two machines only if
    they run the same program, whatever its version is called."""
    packages = {"headway"}
    for group in _GROUPS:
        packages |= {entry.module.partition(".")[0] for entry in entry_points(group=group)}
    found = hashlib.sha256()
    for package in sorted(packages):
        spec = find_spec(package)
        for folder in sorted(spec.submodule_search_locations or ()) if spec else ():
            for path in sorted(Path(folder).rglob("*.py")):
                found.update(f"{package}/{path.relative_to(folder)}\0".encode())
                found.update(hashlib.sha256(path.read_bytes()).digest())
        if spec and spec.origin and not spec.submodule_search_locations:
            found.update(f"{package}\0".encode() + Path(spec.origin).read_bytes())
    return found.hexdigest()


def program() -> dict[str, str]:
    """Version and source of headway."""
    return {"version": __version__, "code": code_digest()}


def surroundings() -> dict[str, str]:
    """What else ran: Python, the machine, libraries; "" where one is not installed."""
    found = {"python": platform.python_version(), "machine": f"{platform.system()} {platform.machine()}"}
    for library in _LIBRARIES:
        try:
            found[library] = version(library)
        except PackageNotFoundError:
            found[library] = ""
    return found


@dataclass(frozen=True)
class Files:
    """The files that a campaign's definition names, with the SHA-256 of each ("": it is gone)."""

    #: By their real paths.
    traces: Mapping[Path, str]
    others: Mapping[Path, str]

    def named(self, folder: Path) -> dict[str, str]:
        """By name, relative to the folder of the definition if they lie in it."""
        root = folder.resolve()
        return {
            str(path.relative_to(root) if path.is_relative_to(root) else path): digest
            for path, digest in sorted({**self.traces, **self.others}.items())
        }


def files_of(campaign: Campaign, catalogue: Catalogue) -> Files:
    """The files that a campaign reads: traces, estimate models, what was measured on a real
    cluster, files that options of plugins name, and plugin files."""
    traces = {Path(one.trace).resolve() for one in campaign.scenarios if one.trace}
    others = {Path(one.estimates).resolve() for one in campaign.scenarios if Path(one.estimates).is_file()}
    others |= {Path(one).resolve() for one in campaign.plugin_files}
    if campaign.method.measured:
        others.add(Path(campaign.method.measured).resolve())
    for variant in campaign.variants:
        beside = next((one.beside for one in variant.plugins if one.beside is not None), Path())
        others |= {(beside / n).resolve() for n in Plugins.load(variant.plugins, catalogue, None).files.texts}
    return Files({one: digest_of(one) for one in traces}, {one: digest_of(one) for one in others})


def made_by(
    campaign: Campaign,
    files: Mapping[str, str],
    folder: Path,
    where: str,
    began: datetime,
    failed: Sequence[Failed] = (),
) -> dict[str, Any]:
    """What made the results of a campaign that ended just now: ``files`` by name with their digests,
    ``folder``, in which its definition is, ``where`` it ran, and what ``failed``."""
    return {
        **program(),
        "surroundings": surroundings(),
        "folder": str(folder.resolve()),
        "files": dict(files),
        "plugins": list(campaign.plugin_files),
        "seeds": list(campaign.seeds),
        "where": where,
        "began": began.isoformat(timespec="seconds"),
        "ended": datetime.now(UTC).isoformat(timespec="seconds"),
        "failed": [{"place": one.place, "message": one.message, "trace": one.trace} for one in failed],
    }


def changed(before: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """Files that both know and that are not the same."""
    return [name for name, digest in now.items() if before.get(name, digest) != digest]
