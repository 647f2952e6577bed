"""Two queues of headway's on the same hosts: a job of all hosts is not passed by later jobs of the other."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Any

import pytest
from live_daemon import Daemon
from real_systems import Lsf, Pbs, Slurm
from waiting import bound

from headway import events as ev


def plugins(order: str, many: str, few: str) -> list[Any]:
    """EASY, by submission or by priorities, of which queue ``few`` has twice that of ``many``."""
    weights = {"weights": {"age": 1.0, "pool": 1000.0}, "pools": {many: 1, few: 2}}
    return [*([{"multifactor": weights}] if order == "multifactor" else []), "easy", "first-fit"]


def promise(daemon: Daemon, job: str) -> float:
    """From when on ``headway explain`` says that processors are kept for the job, in seconds since the epoch;
    0 while it says no such time. The daemon itself keeps none for a last job of the queue."""
    said = " ".join(daemon.command("explain", job, "--fresh").stdout.split())
    found = re.search(r"kept for it from (\S+ \d\d:\d\d:\d\d) \S+ on", said)
    return datetime.fromisoformat(found[1]).timestamp() if found else 0.0


def keeps_its_promise(daemon: Daemon, system: Any, many: str, few: str) -> None:
    """A job of all hosts in queue ``few`` starts when it was promised, whatever comes to queue ``many``.

    ``system`` is what the daemon drives, real or emulated.
    """
    daemon.start()
    # It is ended as soon as all has been seen, and by itself when it was promised.
    first = system.submit_to(many, 1, 115, minutes=2)
    daemon.until(lambda: system.runs(first), what="the first job runs")
    bob = system.submit_to(few, system.nodes, 1, minutes=5, user="bob")
    daemon.until(lambda: promise(daemon, bob), what="a time is promised")
    promised = promise(daemon, bob)
    alice = [system.submit_to(many, 1, 600) for _ in range(6)]
    said = f"job {bob} of pool '{few}'"
    daemon.until(lambda: said in daemon.command("explain", alice[0]).stdout, what=said)
    alice += [system.submit_to(many, 1, 600) for _ in range(6)]
    system.cancel(first)
    daemon.until(lambda: any(map(system.begun().get, alice)), what="one of alice's runs")
    assert daemon.stop() == 0
    assert [start.job_id for _, start in daemon.starts()][:2] == [first, bob]
    began = {event.job_id: event.time for event in daemon.events(ev.JobStarted)}
    assert began[bob] <= promised + bound(2)
    assert not daemon.events(ev.DecisionFailed)
    daemon.assert_replays()


class SharedNodes:
    """What must hold on each real batch system whose queues are on the same hosts."""

    @pytest.mark.parametrize("order", ["easy", pytest.param("multifactor", marks=pytest.mark.slow)])
    def test_the_job_of_one_queue_starts_when_it_was_promised_whatever_comes_to_the_other(
        self, system: Lsf | Pbs | Slurm, order: str
    ) -> None:
        with system.two_queues() as (many, few):
            daemon = system.daemon(options={system.queues: [many, few]}, plugins=plugins(order, many, few))
            keeps_its_promise(daemon, system, many, few)
