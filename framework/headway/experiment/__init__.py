"""Campaigns: policies x workloads x loads x seeds, with confidence intervals."""

from headway.experiment.campaign import Campaign, Row, Scenario, Variant
from headway.experiment.statistics import Interval, interval, paired

__all__ = ["Campaign", "Interval", "Row", "Scenario", "Variant", "interval", "paired"]
