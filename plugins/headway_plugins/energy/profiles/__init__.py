"""The installed energy profiles, as paths of YAML files (entry points ``headway.energy``)."""

from pathlib import Path

_HERE = Path(__file__).parent
CHANDIO2014 = _HERE / "chandio2014.yaml"
PRESENT_DAY = _HERE / "present-day.yaml"
