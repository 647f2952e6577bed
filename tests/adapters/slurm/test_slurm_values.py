"""Numbers, states and codes as Slurm's versions write them."""

from __future__ import annotations

import math
from typing import Any

import pytest

from headway_adapters.slurm import values


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        (5, 5),
        (None, None),
        ({"set": True, "infinite": False, "number": 5}, 5),
        ({"set": False, "infinite": False, "number": 0}, None),
        ({"set": False, "infinite": True, "number": 0}, math.inf),
        (0xFFFFFFFE, None),
        (0xFFFFFFFF, math.inf),
        (0xFFFFFFFFFFFFFFFE, None),
        ("17", 17),
        ("UNLIMITED", math.inf),
        ("soon", None),
        ([], None),
        (True, None),
        (float("nan"), None),
    ],
)
def test_numbers(written: Any, meant: float | None) -> None:
    assert values.number(written) == meant


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("PENDING", ("PENDING",)),
        (["RUNNING", "COMPLETING"], ("RUNNING", "COMPLETING")),
        ("idle+drain", ("IDLE", "DRAIN")),
        (None, ()),
        ([None, 3, "down"], ("DOWN",)),
    ],
)
def test_states(written: Any, meant: tuple[str, ...]) -> None:
    assert values.words(written) == meant


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        (0, 0),
        (768, 3),
        (15, 143),
        (None, None),
        ({"status": ["SUCCESS"], "return_code": {"set": True, "infinite": False, "number": 0},
          "signal": {"id": {"set": False, "infinite": False, "number": 0}, "name": ""}}, 0),
        ({"status": ["ERROR"], "return_code": 2, "signal": {"signal_id": 0}}, 2),
        ({"status": ["SIGNALED"], "return_code": 0,
          "signal": {"id": {"set": True, "infinite": False, "number": 9}, "name": "KILL"}}, 137),
    ],
)  # fmt: skip
def test_exit_codes_are_those_of_a_shell(written: Any, meant: int | None) -> None:
    assert values.exit_code(written) == meant


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("1-00:00:00", 86400), ("01:00:00", 3600), ("30", 1800), ("90:30", 5430), ("2-3", 183600),
        ("UNLIMITED", math.inf), ("NONE", None), ("", None), ("1x", None),
    ],
)  # fmt: skip
def test_limits_as_text(written: str, meant: float | None) -> None:
    assert values.minutes_text(written) == meant
