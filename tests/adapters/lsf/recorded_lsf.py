"""Recorded output of LSF's commands (fixtures/), and the times at which it was recorded."""

from __future__ import annotations

import calendar
import json
from pathlib import Path
from typing import Any

from headway_adapters.transport import Result

FIXTURES = Path(__file__).parent / "fixtures"


def at(hour: int, minute: int, second: int = 0, day: int = 21) -> float:
    """A moment of the day on which the output was recorded."""
    return float(calendar.timegm((2026, 11, day, hour, minute, second)))


#: Right after the listings were made; the JSON is younger, all is over there.
NOW = at(6, 39, 10)
LATER = at(6, 41)


def fixture(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((FIXTURES / f"{name}.json").read_text(encoding="utf-8"))
    return found


def output(name: str) -> str:
    text: str = fixture(name)["stdout"]
    return text


def result(name: str, **more: Any) -> Result:
    """A recorded command as a transport gives it."""
    found = fixture(name)
    fields: dict[str, Any] = {
        "argv": tuple(found["argv"]), "rc": found["rc"], "stdout": found["stdout"].encode(),
        "stderr": found["stderr"], "seconds": 0.01, **more,
    }  # fmt: skip
    return Result(**fields)
