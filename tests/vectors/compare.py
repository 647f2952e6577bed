"""Cases whose results come from a program that shares nothing with this project, and how they are compared.

``python tests/vectors/compare.py FILE...`` compares further files of cases. A file holds
``{system, cases: [{name, case, expected}]}``. The module of this directory that is called as the system runs
a case.
"""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).parent
#: Numbers may differ by so much.
NEAR = 1e-5
#: The system of a file -> its module here.
MODULES = {"gur": "gur", "data_ga": "data_ga", "wave": "wave"}


class Case(NamedTuple):
    """One case of a file."""

    name: str
    system: str
    case: dict[str, Any]
    expected: Any

    def found(self) -> Any:
        """What the product makes of it, as JSON."""
        return json.loads(json.dumps(importlib.import_module(f"vectors.{self.system}").answer(self.case)))


def cases(paths: list[Path]) -> Iterator[Case]:
    for path in paths:
        for case in (said := json.loads(path.read_text(encoding="utf-8")))["cases"]:
            yield Case(
                f"{path.stem}: {case['name']}", MODULES[said["system"]], case["case"], case["expected"]
            )


def cases_of(system: str) -> list[Case]:
    """The cases of a system that stand here."""
    return list(cases(sorted(HERE.glob(f"{system}_*.json"))))


def alike(found: Any, expected: Any) -> bool:
    """Numbers within :data:`NEAR`, all else exactly."""
    if isinstance(expected, dict):
        same = isinstance(found, dict) and set(found) == set(expected)
        return same and all(alike(found[name], expected[name]) for name in expected)
    if isinstance(expected, list):
        same = isinstance(found, list | tuple) and len(found) == len(expected)
        return same and all(map(alike, found, expected))
    if isinstance(expected, int | float) and not isinstance(expected, bool):
        number = isinstance(found, int | float) and not isinstance(found, bool)
        return number and abs(found - expected) <= NEAR
    return bool(found == expected) and isinstance(found, bool) == isinstance(expected, bool)


def main() -> int:
    sys.path.insert(0, str(HERE.parent))
    wrong = 0
    for case in cases(list(map(Path, sys.argv[1:]))):
        try:
            found = case.found()
        except Exception as error:  # The next cases are compared whatever happens in this case.
            found = f"{type(error).__name__}: {error}"
        if not alike(found, case.expected):
            wrong += 1
            print(f"{case.name}\n  expected {case.expected}\n  found    {found}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
