"""The emulated commands of PBS or LSF, with the system's own scheduler off, unless it is fresh."""

from __future__ import annotations

from pathlib import Path

from headway_adapters.commands import Emulator
from headway_adapters.commands.emulator import EmulatorOptions
from headway_adapters.lab.system import Access, Shape

_QUEUES = {"pbs": "workq", "lsf": "normal"}
_COMMANDS = {
    "pbs": ("qstat", "pbsnodes -a", "qsub -l select=4:ncpus=1 -l walltime=2:00 -- /bin/sleep 60"),
    "lsf": ("bjobs", "bhosts", "bsub -n 4 -W 2 sleep 60"),
}


class EmulatedLab:
    """See :class:`headway_adapters.lab.system.LabSystem`."""

    def __init__(self, system: str, folder: Path, shape: Shape) -> None:
        """``system``: "pbs" or "lsf"."""
        self._system, self._folder, self._shape = system, folder, shape
        self._emulator: Emulator | None = None

    def start(self) -> Access:
        options = EmulatorOptions(
            self._system,
            nodes=self._shape.nodes,
            processors=self._shape.processors,
            scheduling=self._shape.fresh,
        )
        self._emulator = Emulator(self._folder / self._system, options)
        self._emulator.__enter__()
        commands = str(self._emulator.bin)
        return Access(
            adapter=self._system, options={"bin_dir": commands}, queues="queues", queue=_QUEUES[self._system],
            environment={"PATH": commands}, commands=_COMMANDS[self._system],
        )  # fmt: skip

    def stop(self) -> None:
        if self._emulator is not None:
            self._emulator.stop()
