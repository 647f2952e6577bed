"""A metajob on a real Slurm and a real OpenPBS, whose own scheduler confirms reservations."""

from __future__ import annotations

import re
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from batch_servers import BatchServer
from live_daemon import Diary
from metajob_pair import Pair, slurm
from real_systems import EXECUTED, TRAP, Pbs

from headway import events as ev

pytestmark = [pytest.mark.slurm, pytest.mark.pbs, pytest.mark.installed_slurm, pytest.mark.slow]


@pytest.fixture
def pbs(pbs_server: BatchServer) -> Iterator[Pbs]:
    with tempfile.TemporaryDirectory(prefix="hw-pbs-") as directory:
        one = Pbs(pbs_server, Path(directory))
        with one.own_scheduler("workq"):
            yield one
            one.close()


@pytest.fixture
def east(slurm_factory: Callable[..., Any]) -> Any:
    return slurm_factory(nodes=2, cpus=2)


@pytest.fixture
def daemon(east: Any, pbs: Pbs, tmp_path: Path) -> Iterator[Pair]:
    options = pbs.options(reservations=True, bin_dir=str(pbs.server.root / "bin"))
    west = {"adapter": "pbs", "options": options}
    one = Pair(slurm(east), west, tmp_path, {"pool": "west:workq"})
    one.aside = lambda: east.scontrol("show", "reservation") + pbs.server.run("pbs_rstat", "-F") + pbs.aside()
    yield one
    one.clean_up()


def left(east: Any, pbs: Pbs) -> list[str]:
    """The reservations that are there."""
    shown = east.scontrol("-o", "show", "reservation").splitlines()
    return [*(line for line in shown if line.startswith("ReservationName=")), *pbs.reservations().values()]


def timed(pbs: Pbs, diary: Diary, begin: str) -> str:
    """A job of two whole hosts that writes down when it ran, and may not begin before a time."""
    script = pbs.directory / "timed.sh"
    script.write_text("#!/bin/sh\n" + diary.script(5).replace("$SLURM_JOB_ID", "$PBS_JOBID"))
    script.chmod(0o755)
    # In its account, since PBS lets nobody give a job such a name.
    words = (
        "-l",
        "select=2:ncpus=8",
        "-l",
        "place=scatter",
        "-l",
        "walltime=0:2:0",
        "-a",
        begin,
        "-A",
        EXECUTED,
    )
    return pbs.server.run("qsub", *words, "-o", "/dev/null", "-e", "/dev/null", str(script), user="alice")


def test_a_real_slurm_and_a_real_pbs_start_together(east: Any, pbs: Pbs, daemon: Pair) -> None:
    diaries = {"east": Diary(east), "west": Diary(pbs.server)}
    # Names that headway would give.
    foreign = ["headway_m1-0-east", *(f"headway_m1-{number}-west" for number in (0, 1))]
    far = ("StartTime=now+2days", "Duration=10", "NodeCnt=1", "Users=root")
    east.scontrol("create", "reservation", f"ReservationName={foreign[0]}", *far)
    for name in foreign[1:]:
        later = time.strftime("%Y%m%d%H%M", time.localtime(time.time() + 2 * 86400))
        pbs.server.run(
            "pbs_rsub", "-N", name, "-R", later, "-D", "600", "-l", "select=1:ncpus=1", user="alice"
        )
    daemon.start()
    # A later mark than the first that both sites have.
    not_before = time.time() + 100
    begin = time.strftime("%Y%m%d%H%M.%S", time.localtime(not_before))
    jobs = {
        "east": east.submit(
            2,
            nodes=1,
            minutes=2,
            script=diaries["east"].script(5),
            hold=False,
            begin="now+20",
            job_name=EXECUTED,
        ),
        "west": timed(pbs, diaries["west"], begin),
    }
    daemon.until(lambda: len(daemon.events(ev.JobSubmitted)) == 2, what="both are seen")
    metajob = daemon.submit(time.time(), jobs, user="alice")
    daemon.reserved(metajob)
    assert len(left(east, pbs)) == 2 + len(foreign)
    (made,) = (name for name, called in pbs.reservations().items() if called not in foreign)
    for verb in ("pbs_rdel", "pbs_ralter -D 60"):
        refused = pbs.server.call(*verb.split(), made, user="alice")
        assert refused.returncode == 159, refused
    start = min(part["start"] for part in daemon.status(metajob)["parts"])
    assert start >= int(not_before)
    daemon.until(lambda: all(diary.ended() for diary in diaries.values()), 200, "both have run")
    begun = {name: diaries[name].executions()[jobs[name]].begin for name in jobs}
    print("seconds after the start:", {name: round(at - start, 2) for name, at in begun.items()})
    assert abs(begun["east"] - begun["west"]) < 3.0, (begun, start)
    daemon.until(lambda: len(left(east, pbs)) == len(foreign), 60, "the reservations are given back")
    daemon.until(lambda: daemon.status(metajob)["phase"] == "over", 60, "it is over")
    assert daemon.stop() == 0
    daemon.assert_replays()
    assert not TRAP.exists()


def test_cancel_leaves_no_reservation_and_lets_the_jobs_go(east: Any, pbs: Pbs, daemon: Pair) -> None:
    diaries = {"east": Diary(east), "west": Diary(pbs.server)}
    daemon.start()
    begin = time.strftime("%Y%m%d%H%M.%S", time.localtime(time.time() + 20))
    jobs = {
        "east": east.submit(
            2, nodes=1, minutes=2, script=diaries["east"].script(1), hold=False, begin="now+40"
        ),
        "west": timed(pbs, diaries["west"], begin),
    }
    daemon.until(lambda: len(daemon.events(ev.JobSubmitted)) == 2, what="both are seen")
    metajob = daemon.submit(time.time() + 7200, jobs, user="alice")
    daemon.reserved(metajob)
    assert len(left(east, pbs)) == 2
    daemon.ask("cancel", metajob)
    daemon.until(lambda: not left(east, pbs), 60, "all is given back")
    # PBS deletes a reservation with the jobs in its queue: the job was taken out before.
    daemon.until(lambda: all(diary.ended() for diary in diaries.values()), 90, "the jobs run alone")
    assert daemon.stop() == 0
    daemon.assert_replays()


def test_a_pbs_that_dies_at_any_step_of_the_search_leaves_nothing(east: Any, pbs: Pbs, daemon: Pair) -> None:
    daemon.start()
    for step in range(1, 5):
        already = daemon.reserves()
        metajob = daemon.submit(time.time() + 3600, {}, user="alice")
        daemon.until(lambda already=already, step=step: daemon.reserves() >= already + step, 60, "the step")
        pbs.server.kill("server", "-9")
        pbs.server.restart("server")
        daemon.until(
            lambda metajob=metajob: daemon.status(metajob)["phase"] in ("reserved", "refused"), 200, "it ends"
        )
        daemon.ask("cancel", metajob)
        daemon.until(
            lambda metajob=metajob: daemon.status(metajob)["phase"] == "cancelled", 200, "it is given back"
        )
        daemon.until(lambda: not left(east, pbs), 60, f"nothing is left after step {step}")
        assert daemon.status(metajob)["leaks"] == []
    assert daemon.stop() == 0
    daemon.assert_replays()


def test_without_pbs_scheduler_a_metajob_is_refused_and_leaves_nothing(
    east: Any, pbs: Pbs, daemon: Pair
) -> None:
    pbs.server.kill("sched")
    pbs.server.until(lambda: "state = down" in pbs.server.run("qmgr", "-c", "list sched"), "PBS notices it")
    checked = daemon.command("check")
    assert checked.returncode == 1
    assert "default is down: reservations stay unconfirmed" in " ".join(checked.stdout.split())
    daemon.start()
    metajob = daemon.submit(time.time() + 3600, {}, user="alice")
    daemon.until(lambda: daemon.status(metajob)["phase"] == "refused", 120, "it is refused")
    assert "wait period expired" in daemon.status(metajob)["why"]
    assert not left(east, pbs) and daemon.status(metajob)["leaks"] == []
    pbs.server.restart("sched")

    def reserved() -> bool:
        """Once the adapter asks PBS's scheduler again."""
        again = daemon.submit(time.time() + 3600, {}, user="alice")
        daemon.until(lambda: daemon.status(again)["phase"] in ("reserved", "refused"), 60, "it ends")
        return daemon.status(again)["phase"] == "reserved"

    daemon.until(reserved, 120, "PBS confirms reservations again")
    assert daemon.stop() == 0
    daemon.assert_replays()


def test_a_host_that_goes_down_and_a_reservation_that_is_deleted_are_told(
    east: Any, pbs: Pbs, daemon: Pair
) -> None:
    diary = Diary(pbs.server)
    daemon.start()
    begin = time.strftime("%Y%m%d%H%M.%S", time.localtime(time.time() + 7200))
    job = timed(pbs, diary, begin)
    daemon.until(lambda: len(daemon.events(ev.JobSubmitted)) == 1, what="it is seen")
    metajob = daemon.submit(time.time() + 7200, {"west": job}, user="alice")
    daemon.reserved(metajob)
    (name,) = pbs.reservations()
    host = re.findall(r"resv_nodes = \((\w+):", pbs.server.run("pbs_rstat", "-F"))[0]
    pbs.server.run("pbsnodes", "-o", host, user="root")
    lost = "the reservation has lost nodes (DEGRADED)"
    daemon.until(lambda: lost in str(daemon.status(metajob)["losses"]), 60, "the loss is told")
    assert list(pbs.reservations()) == [name]
    pbs.server.run("pbsnodes", "-r", host, user="root")
    daemon.ask("cancel", metajob)
    daemon.until(lambda: not left(east, pbs), 60, "the degraded reservation is given back, too")

    again = daemon.submit(time.time() + 7200, {"west": job}, user="alice")
    daemon.reserved(again)
    (name,) = pbs.reservations()
    # PBS deletes the reservation's jobs with it.
    pbs.server.run("pbs_rdel", name, user="root")
    gone = "the reservation is gone"
    daemon.until(lambda: gone in str(daemon.status(again)["losses"]), 60, "the loss is told")
    assert daemon.said("inconsistent")
    daemon.ask("cancel", again)
    daemon.until(lambda: not left(east, pbs), 60, "the other part is given back")
    assert daemon.stop() == 0
    daemon.assert_replays()


def test_a_daemon_that_dies_at_any_step_of_the_search_leaves_nothing(
    east: Any, pbs: Pbs, daemon: Pair
) -> None:
    daemon.start()
    for step in range(1, 5):
        already = daemon.reserves()
        metajob = daemon.submit(time.time() + 3600, {}, user="alice")
        daemon.until(lambda already=already, step=step: daemon.reserves() >= already + step, 60, "the step")
        daemon.kill()
        daemon.start()
        daemon.reserved(metajob)
        daemon.until(lambda: len(left(east, pbs)) == 2, 60, f"no more than its parts after step {step}")
        daemon.ask("cancel", metajob)
        daemon.until(lambda: not left(east, pbs), 60, f"nothing is left after step {step}")
        assert daemon.status(metajob)["leaks"] == []
    assert daemon.stop() == 0
