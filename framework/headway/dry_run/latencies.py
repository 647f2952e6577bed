"""What a daemon has measured of its batch system's latencies, for emulated runs."""

from __future__ import annotations

from pathlib import Path

from headway.config import Config
from headway.errors import HeadwayError
from headway.journal import Journal
from headway.journal.latencies import Latencies, measured, together


def measured_latencies(config: Config) -> Latencies | None:
    """What the daemon with this configuration has measured; None: nothing, or nothing that can be read."""
    if "://" not in config.journal and not Path(config.journal).exists():
        return None
    try:
        with Journal.open(config.journal, create=False, read_only=True) as journal:
            return together(measured(journal)) or None
    except HeadwayError:
        return None
