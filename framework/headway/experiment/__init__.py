"""Campaigns: policies x workloads x loads x seeds, with confidence intervals."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headway.inputs.late import late

if TYPE_CHECKING:
    from headway.experiment.campaign import Campaign, Row, Scenario, Variant
    from headway.experiment.statistics import Interval, interval, paired

__all__ = ["Campaign", "Interval", "Row", "Scenario", "Variant", "interval", "paired"]

__getattr__ = late(
    __name__,
    {
        ".campaign": "Campaign Row Scenario Variant",
        ".statistics": "Interval interval paired",
    },
)
