"""What ``headway init`` asks a batch system before it knows anything: what it is, and what it lacks.

An adapter brings it: the entry points of the group :data:`GROUP` (name of the adapter -> a class that is made
without arguments and has the methods of :class:`Survey`). A survey changes nothing. How large the cluster is
and what is not in order is asked by the adapter itself, with the configuration that the survey writes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import msgspec

from headway.adapter.condition import Check
from headway.errors import UserError, nearest
from headway.inputs.entry_points import entry_points
from headway.model import ClusterDescription

GROUP = "headway.surveys"
#: The configuration among a site's files, and the schema that its first line names, for editors.
CONFIGURATION = "headway.yaml"
SCHEMA = "headway.schema.json"


class Seen(msgspec.Struct, frozen=True):
    """What a batch system says of itself."""

    #: For a person, with its version: ``Slurm 22.05.8``.
    title: str
    #: Its own name.
    cluster: str
    #: The user whose commands asked.
    user: str
    #: The pools that headway can take, in its order; the default first.
    pools: tuple[str, ...]
    #: What decides how headway runs beside it: key -> value, in the batch system's words.
    settings: Mapping[str, str]
    #: The adapter's options that reach it, without the pools.
    options: Mapping[str, Any]
    #: Sentences about what is odd, or was not answered.
    remarks: tuple[str, ...] = ()


class Place(msgspec.Struct, frozen=True):
    """Where headway is to run, and as which user."""

    #: The program that the unit calls.
    program: str
    #: Whether it is there, for that user; else it has to be installed.
    installed: bool
    #: The user; "": the batch system's own user, or ``headway``.
    user: str = ""
    config: str = "/etc/headway/headway.yaml"
    journal: str = "/var/lib/headway/journal.sqlite"
    socket: str = "/run/headway/headway.sock"

    @property
    def folder(self) -> str:
        """The folder of the configuration."""
        return str(Path(self.config).parent)


class SiteFile(msgspec.Struct, frozen=True):
    """A file for the site."""

    name: str
    text: str


class Asked(Protocol):
    """One batch system, once it has been asked."""

    seen: Seen

    def configuration(self, pools: Sequence[str], place: Place) -> str:
        """The configuration file that watches these pools."""

    def files(
        self, pools: Sequence[str], cluster: ClusterDescription, checks: Sequence[Check], place: Place
    ) -> Sequence[SiteFile]:
        """The other files: the unit, what the batch system needs, and README.md, which tells what to do.

        ``checks``: what ``headway check`` says of the configuration; some of it is to be done before headway
        drives.
        """


class Survey(Protocol):
    """One kind of batch system."""

    #: For a person, such as ``Slurm``.
    title: str
    #: What it calls pools, such as ``partitions``: the adapter's option that names them.
    pools_word: str
    #: Programs that it cannot be asked without.
    programs: Sequence[str]

    def folders(self) -> Sequence[Path]:
        """Where its programs usually are, beside PATH: by its own variables and files on this machine."""

    def ask(self, options: Mapping[str, Any]) -> Asked:
        """Ask it. ``options``: of the adapter, such as ``bin_dir`` or ``ssh``.

        Raises :class:`headway.errors.Failure` with its words if it does not answer,
        :class:`headway.errors.UserError` for wrong options.
        """


def surveys() -> dict[str, Survey]:
    """What is installed: name of the adapter -> survey."""
    return {entry.name: entry.load()() for entry in entry_points(group=GROUP)}


def survey_of(name: str) -> Survey:
    """One of them; raises :class:`UserError` with the nearest names if there is none."""
    known = {entry.name: entry for entry in entry_points(group=GROUP)}
    if name not in known:
        raise UserError(f"no adapter that can be asked is called {name!r}.{nearest(name, known)}")
    survey: Survey = known[name].load()()
    return survey
