"""Campaigns: policies x workloads x loads x seeds, with confidence intervals."""

from headway.experiment.campaign import Campaign, Row, Scenario, Variant
from headway.experiment.execution import run_campaign
from headway.experiment.statistics import Interval, interval, paired

__all__ = ["Campaign", "Interval", "Row", "Scenario", "Variant", "interval", "paired", "run_campaign"]
