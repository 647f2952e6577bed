"""What the surveys share: which names of pools can be taken, and where the commands are."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import pydantic

from headway.cli.printable import printable
from headway.errors import Failure, UserError
from headway.inputs.validation import explain_validation

#: Where programs are found without ``bin_dir``, by a service, too.
USUAL_FOLDERS = ("/usr/bin", "/bin", "/usr/local/bin", "/usr/sbin", "/sbin", "/usr/local/sbin")
#: Characters of a remark.
_LONGEST = 300

Options = TypeVar("Options", bound=pydantic.BaseModel)


def options_with(
    model: type[Options], given: Mapping[str, Any], pools_word: str, pools: Sequence[str]
) -> Options:
    """The adapter's options with these pools; :class:`UserError` for wrong ones."""
    try:
        return model.model_validate({**given, pools_word: list(pools)})
    except pydantic.ValidationError as error:
        raise UserError(explain_validation(error, "--set", model)) from error


def takeable(
    names: Iterable[str], pools_word: str, model: type[pydantic.BaseModel], remarks: list[str]
) -> list[str]:
    """The names that the adapter's options take, each once; a remark says which are left out."""
    found: list[str] = []
    for name in dict.fromkeys(names):
        try:
            model.model_validate({pools_word: [name]})
        except pydantic.ValidationError:
            remarks.append(
                f"{pools_word}: {one_line(name)!r} is left out: headway takes names of letters, digits, "
                "'_', '-' and '.'"
            )
        else:
            found.append(name)
    if not found:
        raise Failure(f"{pools_word}: expected at least one with a name that headway takes, found none")
    return found


def one_line(text: str) -> str:
    """What a batch system said, safe to print, on one line."""
    return " ".join(printable(text).split())[:_LONGEST]


def bin_dir(given: Mapping[str, Any], folders: Sequence[Path], program: str) -> dict[str, str]:
    """The option ``bin_dir``, where a service would not find the program without it."""
    if "bin_dir" in given or "ssh" in given:
        return {}
    path = [Path(folder) for folder in os.environ.get("PATH", "").split(os.pathsep) if folder.startswith("/")]
    for folder in (*map(Path, USUAL_FOLDERS), *path, *folders):
        if os.access(folder / program, os.X_OK):
            return {} if str(folder) in USUAL_FOLDERS else {"bin_dir": str(folder)}
    return {}


def from_environment(options: Mapping[str, Any], **variables: str) -> dict[str, str]:
    """Options whose variables are set here, and of which nothing is said; a service has not got these.

    ``variables``: option -> variable.
    """
    if "ssh" in options:
        return {}
    return {
        name: value
        for name, variable in variables.items()
        if name not in options and (value := os.environ.get(variable, ""))
    }
