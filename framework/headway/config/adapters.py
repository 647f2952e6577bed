"""Which adapters a configuration can name: those that are installed, and the adapters of files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import pydantic

from headway.adapter import ClusterAdapter
from headway.config.emulation import EmulationConfig
from headway.config.section import Section
from headway.config.sites import SiteConfig
from headway.errors import UserError, nearest
from headway.inputs.python_file import load_file, own_classes

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

#: Entry point group of the installed adapters.
ADAPTERS = "headway.adapters"


class ClusterConfig(Section):
    """Which batch system, and how to reach it."""

    adapter: str = pydantic.Field(default="emulated", description="name of the adapter: slurm, emulated, ...")
    options: dict[str, Any] = pydantic.Field(default_factory=dict, description="the adapter's own options")


class MemberConfig(ClusterConfig):
    """One of several clusters."""

    site: SiteConfig | None = pydantic.Field(
        default=None, description="what it is beside its batch system: owner, zone, calendar, store"
    )
    emulation: EmulationConfig | None = pydantic.Field(
        default=None, description="what stands for it in a dry run, with the keys of `emulation`"
    )


@dataclass(frozen=True)
class FileAdapter:
    """An adapter of a file (``--adapter FILE.py``)."""

    #: What ``cluster.adapter`` calls it: the class's ``name``, else the file's name without ``.py``.
    name: str
    kind: type[ClusterAdapter]
    path: Path


@dataclass(frozen=True)
class Adapters:
    """The installed adapters, and the adapters of files."""

    of_files: tuple[FileAdapter, ...] = ()

    @classmethod
    def with_files(cls, paths: Iterable[Path]) -> Adapters:
        """The installed adapters and that of each file.

        Raises :class:`UserError` for a file that does not load or does not hold one adapter, for an adapter
        that lacks something, and for a name that is taken.
        """
        found: list[FileAdapter] = []
        for path in paths:
            one = _of_file(path)
            taken = {other.name: f"--adapter {other.path}" for other in found}
            taken.update({name: entry.value for name, entry in _installed().items()})
            if one.name in taken:
                raise UserError(
                    f"--adapter {path}: the name {one.name!r} is taken by {taken[one.name]}; give the class "
                    'another: name = "..."'
                )
            found.append(one)
        return cls(tuple(found))

    def names(self) -> list[str]:
        """What ``cluster.adapter`` can be."""
        return sorted({*_installed(), *(one.name for one in self.of_files)})

    def get(self, name: str, where: str = "cluster.adapter") -> Any:
        """The adapter class of that name; :class:`UserError` if there is none, with the nearest names."""
        for one in self.of_files:
            if one.name == name:
                return one.kind
        if (entry := _installed().get(name)) is not None:
            return entry.load()
        raise UserError(
            f"{where}: no adapter is called {name!r}.{nearest(name, self.names())} If its class is in a "
            "file, give that file: --adapter FILE.py"
        )


#: The installed adapters alone.
INSTALLED = Adapters()


@cache
def _installed() -> Mapping[str, EntryPoint]:
    """The installed adapters by name: found once, since each emulation asks."""
    from headway.inputs.entry_points import entry_points

    return MappingProxyType({entry.name: entry for entry in entry_points(group=ADAPTERS)})


def _of_file(path: Path) -> FileAdapter:
    own = own_classes(load_file(path, "--adapter"))
    adapters = [cls for cls in own if issubclass(cls, ClusterAdapter)]
    # A class that another class of the file extends is a part of that class.
    found = [cls for cls in adapters if not any(cls in other.__mro__[1:] for other in adapters)]
    if len(found) != 1:
        there = ", ".join(cls.__name__ for cls in found or own) or "none"
        others = "" if found or not own else "other classes: "
        raise UserError(
            f"--adapter {path}: expected one class that extends headway.adapter.ClusterAdapter "
            f"(such as a PollingAdapter), found {others}{there}"
        )
    (kind,) = found
    if lacks := kind.lacking():
        raise UserError(f"--adapter {path}: class {kind.__name__!r} lacks {'; '.join(lacks)}")
    return FileAdapter(str(getattr(kind, "name", path.stem)), kind, path)
