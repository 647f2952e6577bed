"""What became of an account's jobs with deadlines."""

from __future__ import annotations

from typing import Any

import msgspec


class Figures(msgspec.Struct):
    """What became of an account's jobs."""

    submitted: int = 0
    met: int = 0
    missed: int = 0
    at_upper_ends: int = 0
    levels: float = 0.0
    value: float = 0.0

    def told(self) -> dict[str, Any]:
        ratio = self.met / self.submitted if self.submitted else None
        return {
            "submitted": self.submitted,
            "met": self.met,
            "missed": self.missed,
            "guarantee_ratio": ratio,
            "security_value": self.value,
            "overall": self.value * ratio if ratio is not None else None,
            "mean_level": self.levels / self.met if self.met else None,
            "at_upper_ends": self.at_upper_ends / self.met if self.met else None,
        }
