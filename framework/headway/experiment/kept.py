"""The rows of experiments in a directory: on disk as each task ends, and there for a later call.

Each experiment has a file ``NAME.csv``. ``parameters.json`` says of each what it was made with: the call, the
version, a digest of the experiment's definition, and which rules of evaluation a campaign broke. Rows are
taken again only if that digest is the same; different ones are refused, never mixed. A line that was being
written when the process was killed is left out.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from headway.errors import UserError
from headway.experiment.campaign import Row, append_rows, read_rows, write_rows
from headway.experiment.claims_page import Broken
from headway.report.atomic import writing
from headway.version import __version__

PARAMETERS = "parameters.json"


def digest(definition: object) -> str:
    """What stands for an experiment's definition: the same for equal dataclasses, mappings and numbers."""
    encoded = msgspec.json.encode(msgspec.to_builtins(definition, str_keys=True, order="deterministic"))
    return hashlib.sha256(encoded).hexdigest()


class KeptRows:
    """What a directory has of experiments."""

    def __init__(self, directory: Path, call: str = "", *, keep: bool = False) -> None:
        """``call``: the command, for people; ``keep``: rows of a call before are to be taken."""
        self._directory = directory
        self._call = call
        self._keep = keep

    def begin(self, name: str, definition: object) -> list[Row]:
        """The rows that are there of just this experiment, if they are to be kept; if not, they are removed.

        Raises :class:`UserError` if rows are to be kept and are of other parameters, or of unknown ones.
        """
        path = self._path(name)
        mine = {"call": self._call, "version": __version__, "definition": digest(definition)}
        known = self._parameters()
        rows: list[Row] = []
        if self._keep and path.is_file():
            self._check(path, known.get(name), mine)
            rows = read_rows(path)
        if rows:
            write_rows(path, rows)
        else:
            path.unlink(missing_ok=True)
        self._write({**known, name: {**known[name], **mine} if rows else mine})
        return rows

    def add(self, name: str, rows: Sequence[Row]) -> None:
        """Further rows; on disk when this returns."""
        append_rows(self._path(name), rows)

    def complete(self, name: str, rows: Sequence[Row]) -> None:
        """All rows of an experiment, in their order."""
        write_rows(self._path(name), rows)

    def broken(self, name: str) -> list[Broken] | None:
        """The rules that an experiment broke when its rows were made; None: not noted."""
        noted = self._parameters().get(name, {}).get("broken")
        try:
            return None if noted is None else msgspec.convert(noted, list[Broken])
        except msgspec.ValidationError as error:
            raise UserError(f"{self._directory / PARAMETERS}: {name}: broken: {error}") from error

    def note(self, name: str, broken: Sequence[Broken]) -> None:
        """Note which rules an experiment that has begun broke."""
        known = self._parameters()
        self._write({**known, name: {**known[name], "broken": msgspec.to_builtins(broken)}})

    def _write(self, parameters: dict[str, Any]) -> None:
        self._directory.mkdir(parents=True, exist_ok=True)
        with writing(self._directory / PARAMETERS) as stream:
            json.dump(parameters, stream, indent=1, sort_keys=True, ensure_ascii=False)
            stream.write("\n")

    def _path(self, name: str) -> Path:
        return self._directory / f"{name}.csv"

    def _parameters(self) -> dict[str, Any]:
        path = self._directory / PARAMETERS
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return {}
        except ValueError as error:
            raise UserError(f"{path}: expected JSON, found something else ({error})") from error
        if not isinstance(found, dict) or not all(isinstance(entry, dict) for entry in found.values()):
            raise UserError(f"{path}: expected experiments with their parameters, found something else")
        return found

    def _check(self, path: Path, theirs: dict[str, str] | None, mine: dict[str, str]) -> None:
        remedy = "Name another directory (--out), or run everything again (without --keep)."
        if theirs is None:
            raise UserError(
                f"{path}: its rows cannot be kept, because {PARAMETERS} does not name their parameters. "
                f"{remedy}"
            )
        if theirs.get("definition") != mine["definition"]:
            raise UserError(
                f"{path}: its rows cannot be kept, because they were made with other parameters: expected "
                f"the parameters of `{self._call}` (version {__version__}), found the parameters of "
                f"`{theirs.get('call')}` (version {theirs.get('version')}). {remedy}"
            )
