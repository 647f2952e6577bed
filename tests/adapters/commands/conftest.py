"""An emulator that runs for one test: fixtures ``pbs``, ``lsf`` and ``ibm``, or ``emulated`` for others."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from emulated_commands import Commands

from headway_adapters.commands import Emulator, EmulatorOptions


@pytest.fixture
def emulated(tmp_path: Path) -> Iterator[Callable[..., Commands]]:
    """Start emulators: ``emulated("pbs", nodes=2, scheduling=False)``."""
    started: list[Emulator] = []

    def start(system: str, **options: Any) -> Commands:
        emulator = Emulator(tmp_path / f"{system}{len(started)}", EmulatorOptions(system, **options))
        emulator.__enter__()
        started.append(emulator)
        return Commands(emulator)

    yield start
    for emulator in started:
        emulator.stop()


@pytest.fixture
def pbs(emulated: Callable[..., Commands]) -> Commands:
    """PBS on one host with four virtual nodes of 8 processors, its own scheduler off: as recorded."""
    return emulated("pbs", hosts=("pbshost",), vnodes=4, memory=16 << 30, scheduling=False)


@pytest.fixture
def lsf(emulated: Callable[..., Commands]) -> Commands:
    """volclava on one host with two slots, its queue inactivated: as recorded."""
    return emulated("lsf", hosts=("lsfhost",), processors=2, scheduling=False, flavour="volclava",
                    name="volclava", start_delay=0.05)  # fmt: skip


@pytest.fixture
def ibm(emulated: Callable[..., Commands]) -> Commands:
    """IBM Spectrum LSF on three hosts with four slots, its queue inactivated."""
    return emulated("lsf", nodes=3, processors=4, scheduling=False, start_delay=0.05)
