"""A directory that looks like ``/sys``, written as the kernel shows it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path


class Tree:
    """A fake sysfs. Frequencies are kHz, as the kernel writes them."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.cpus = root / "devices/system/cpu"
        self.zones = root / "class/powercap"

    def processors(self, count: int) -> Tree:
        for cpu in range(count):
            (self.cpus / f"cpu{cpu}").mkdir(parents=True)
        self.put("online", "0" if count == 1 else f"0-{count - 1}")
        return self

    def policy(
        self,
        cpus: Sequence[int],
        *,
        least: int = 800_000,
        most: int = 3_000_000,
        levels: Sequence[int] = (),
        governor: str = "schedutil",
        limits: tuple[int, int] | None = None,
    ) -> Path:
        """A policy over ``cpus``, linked from each as the kernel does. ``limits``: least and most now."""
        path = self.cpus / "cpufreq" / f"policy{min(cpus)}"
        path.mkdir(parents=True)
        now_least, now_most = limits or (least, most)
        files = {
            "affected_cpus": " ".join(map(str, cpus)),
            "cpuinfo_min_freq": least,
            "cpuinfo_max_freq": most,
            "scaling_min_freq": now_least,
            "scaling_max_freq": now_most,
            "scaling_cur_freq": now_least,
            "scaling_governor": governor,
            "scaling_setspeed": now_most if governor == "userspace" else "<unsupported>",
        }
        if levels:
            files["scaling_available_frequencies"] = " ".join(map(str, levels)) + " "
        for name, value in files.items():
            (path / name).write_text(f"{value}\n")
        for cpu in cpus:
            (self.cpus / f"cpu{cpu}" / "cpufreq").symlink_to(f"../cpufreq/policy{min(cpus)}")
        return path

    def zone(self, zone: str, name: str, microjoules: int, reach: int = 262_143_328_850) -> Path:
        path = self.zones / zone
        path.mkdir(parents=True, exist_ok=True)
        (path / "name").write_text(f"{name}\n")
        (path / "energy_uj").write_text(f"{microjoules}\n")
        (path / "max_energy_range_uj").write_text(f"{reach}\n")
        return path

    def put(self, name: str, value: object) -> None:
        (self.cpus / name).write_text(f"{value}\n")
