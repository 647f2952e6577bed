"""A metajob on a real Slurm and a real LSF that has no reservations (volclava): headway says so first."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from batch_servers import BatchServer
from metajob_pair import Pair, slurm
from real_systems import Lsf

pytestmark = [pytest.mark.slurm, pytest.mark.lsf, pytest.mark.installed_slurm, pytest.mark.slow]


@pytest.fixture
def lsf(lsf_server: BatchServer) -> Iterator[Lsf]:
    with tempfile.TemporaryDirectory(prefix="hw-lsf-") as directory:
        one = Lsf(lsf_server, Path(directory))
        yield one
        one.close()


def test_a_machine_on_an_lsf_without_reservations_is_refused_before_any_search(
    slurm_factory: Callable[..., Any], lsf: Lsf, tmp_path: Path
) -> None:
    east = slurm_factory(nodes=2, cpus=2)
    options = lsf.options(bin_dir=str(lsf.server.root / "bin"))
    machine = {"pool": "west:hwtest", "grain": 600, "min_duration": 600}
    daemon = Pair(slurm(east), {"adapter": "lsf", "options": options}, tmp_path, machine)
    says = "machines.west.pool: expected a pool whose cluster makes reservations, found 'west:hwtest'"
    try:
        checked = daemon.command("check")
        assert checked.returncode == 1
        assert says in " ".join(checked.stdout.split()), checked.stdout + checked.stderr
        assert "Reserve: brsvadd is IBM Spectrum LSF's" in " ".join(checked.stdout.split())
        daemon.start(await_log=False)
        assert daemon.ended(60) == 2
        assert says in daemon.log_path.read_text()
        assert "ReservationName=" not in east.scontrol("-o", "show", "reservation")
    finally:
        daemon.clean_up()
