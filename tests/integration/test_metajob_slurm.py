"""A metajob on two real Slurms: its jobs start at one moment, and a cancelled one leaves no reservation."""

from __future__ import annotations

import contextlib
import os
import pwd
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from emulated_commands import Commands
from live_daemon import Diary
from mail_script import MailBox
from metajob_pair import Pair, slurm

from headway import events as ev
from headway_adapters.commands import Emulator, EmulatorOptions

pytestmark = [pytest.mark.slurm, pytest.mark.slow]


@contextlib.contextmanager
def emulated(directory: Path, system: str, queue: str, *stop: str) -> Iterator[Commands]:
    """The emulated commands of a system that makes reservations and leaves the queue to headway."""
    with Emulator(directory, EmulatorOptions(system, nodes=2, processors=2, queues=(queue,))) as emulator:
        commands = Commands(emulator)
        commands.ok(*stop)
        yield commands


@pytest.fixture
def clusters(slurm_factory: Callable[..., Any]) -> dict[str, Any]:
    return {name: slurm_factory(nodes=2, cpus=2) for name in ("east", "west")}


@pytest.fixture
def daemon(clusters: dict[str, Any], tmp_path: Path) -> Iterator[Pair]:
    one = Pair(slurm(clusters["east"]), slurm(clusters["west"]), tmp_path)
    yield one
    one.clean_up()


def reservations(clusters: dict[str, Any]) -> list[str]:
    said = [cluster.scontrol("-o", "show", "reservation") for cluster in clusters.values()]
    return [line for text in said for line in text.splitlines() if line.startswith("ReservationName=")]


def test_a_pair_starts_at_one_moment_and_a_cancelled_pair_leaves_nothing(
    clusters: dict[str, Any], daemon: Pair
) -> None:
    diaries = {name: Diary(cluster) for name, cluster in clusters.items()}
    daemon.aside = lambda: "\n".join(
        cluster.scontrol("show", "reservation") + cluster.scontrol("show", "job")
        for cluster in clusters.values()
    )
    daemon.start()
    jobs = {
        name: cluster.submit(
            2, nodes=1, minutes=2, script=diaries[name].script(5), hold=False, begin="now+15"
        )
        for name, cluster in clusters.items()
    }
    metajob = daemon.submit(time.time(), jobs)
    daemon.reserved(metajob)
    assert len(reservations(clusters)) == 2
    assert "is bound" in daemon.ask("status", metajob)

    daemon.until(lambda: all(diary.ended() for diary in diaries.values()), 150, "both have run")
    begun = {name: diaries[name].executions()[jobs[name]].begin for name in clusters}
    start = min(part["start"] for part in daemon.status(metajob)["parts"] or [{"start": 0}])
    assert abs(begun["east"] - begun["west"]) < 2.0, (begun, start)
    # What the jobs do not need any more is given back.
    daemon.until(lambda: not reservations(clusters), 60, "the reservations are given back")
    daemon.until(lambda: daemon.status(metajob)["phase"] == "over", 60, "it is over")

    later = {
        name: cluster.submit(
            2, nodes=1, minutes=2, script=diaries[name].script(1), hold=False, begin="now+30"
        )
        for name, cluster in clusters.items()
    }
    second = daemon.submit(time.time() + 7200, later)
    daemon.reserved(second)
    assert len(reservations(clusters)) == 2
    daemon.ask("cancel", second)
    daemon.until(lambda: not reservations(clusters), 60, "all is given back")
    daemon.until(lambda: all(len(diary.ended()) == 2 for diary in diaries.values()), 90, "the jobs run alone")
    assert daemon.stop() == 0
    daemon.assert_replays()


@pytest.mark.parametrize(("on_loss", "phase", "left"), [("keep", "reserved", 1), ("cancel_all", "lost", 0)])
def test_a_site_that_loses_a_part_has_its_user_written_to_and_the_rest_kept_or_given_back(
    clusters: dict[str, Any], daemon: Pair, on_loss: str, phase: str, left: int
) -> None:
    box = MailBox(daemon.directory / "box")
    daemon.config["plugins"][0]["metajobs"]["on_loss"] = on_loss
    daemon.configure(letters=box.config())
    daemon.aside = lambda: "\n".join(reservations(clusters))
    daemon.start()
    metajob = daemon.submit(time.time() + 3600, {})
    daemon.reserved(metajob)
    (line,) = reservations({"west": clusters["west"]})
    lost = line.split()[0].removeprefix("ReservationName=")
    clusters["west"].scontrol("delete", f"ReservationName={lost}")
    daemon.until(box.letters, 60, "the letter")
    daemon.until(lambda: daemon.status(metajob)["phase"] == phase, 60, phase)
    daemon.until(lambda: "Letters to users: 1 delivered" in daemon.command("status").stdout, 60, "counted")
    assert len(reservations(clusters)) == left
    assert daemon.stop() == 0
    ((words, text),) = box.letters()
    user = pwd.getpwuid(os.getuid()).pw_name
    assert words == ["-s", f"[headway] metajob {metajob} has lost a part", "--", user]
    assert f"  west: {lost.removeprefix('headway_')}: the reservation is gone\n" in text
    daemon.assert_replays()
    assert len(box.letters()) == 1


@pytest.mark.parametrize(
    ("on_loss", "phase", "meanwhile", "after", "letters"),
    [("keep", "reserved", 1, 2, ["has a part again", "has lost a part"]),
     ("cancel_all", "lost", 0, 0, ["has lost a part"])],
)  # fmt: skip
def test_a_site_that_goes_silent_after_success_is_a_loss_and_nothing_is_left_when_it_answers(
    clusters: dict[str, Any], daemon: Pair, on_loss: str, phase: str, meanwhile: int, after: int,
    letters: list[str],
) -> None:  # fmt: skip
    box = MailBox(daemon.directory / "box")
    daemon.config["plugins"][0]["metajobs"].update(on_loss=on_loss, patience=10.0)
    daemon.configure(letters=box.config())
    east, west = ({name: clusters[name]} for name in ("east", "west"))
    daemon.start()
    metajob = daemon.submit(time.time() + 3600, {})
    daemon.reserved(metajob)
    assert len(reservations(east)) == len(reservations(west)) == 1
    # In good order, so that slurmctld knows its reservation again.
    clusters["west"].kill("slurmctld", "TERM")
    daemon.until(box.letters, 120, "the letter")
    daemon.until(lambda: daemon.status(metajob)["phase"] == phase, 60, phase)
    daemon.until(lambda: len(reservations(east)) == meanwhile, 60, "the other part")
    clusters["west"].up("slurmctld")
    daemon.until(lambda: daemon.events(ev.ClusterAnswers), 120, "it answers")
    daemon.until(lambda: len(reservations(clusters)) == after, 60, "the site's part")
    daemon.until(lambda: len(box.letters()) == len(letters), 60, "the letters")
    (silent,) = daemon.events(ev.ClusterSilent)
    assert silent.cluster == "west" and silent.reason
    daemon.ask("cancel", metajob)
    daemon.until(lambda: not reservations(clusters), 60, "nothing is left")
    assert daemon.status(metajob)["leaks"] == []
    assert daemon.stop() == 0
    assert [words[1] for words, _ in box.letters()] == [
        f"[headway] metajob {metajob} {said}" for said in letters
    ]
    text = box.letters()[-1][1]
    assert "west: " in text and "the site does not answer" in text
    daemon.assert_replays()


#: How a user submits a held job of both nodes, and releases it; the queue, and how it is left to headway; the
#: adapter's options; what lists reservations.
SYSTEMS = {
    "pbs": (
        ("qsub", "-l", "select=2:ncpus=2", "-l", "walltime=0:2:0", "-h", "--", "/bin/sleep", "5"), "qrls",
        "workq", ("qmgr", "-c", "set queue workq started = False"),
        {"reservations": True, "commands_per_minute": None}, "pbs_rstat",
    ),
    "lsf": (
        ("bsub", "-n", "4", "-W", "2", "-H", "sleep", "5"), "bresume",
        "normal", ("badmin", "qinact", "normal"), {}, "brsvs",
    ),
}  # fmt: skip


@pytest.mark.parametrize("system", SYSTEMS)
def test_a_slurm_and_another_start_together(
    slurm_factory: Callable[..., Any], system: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    submit, release, queue, stop, more, show = SYSTEMS[system]
    # PBS lets root make no reservation.
    monkeypatch.setenv("HEADWAY_EMULATED_USER", "headway:manager")
    east = slurm_factory(nodes=2, cpus=2)
    with emulated(tmp_path / "commands", system, queue, *stop) as there:
        options = {"queues": [queue], "bin_dir": str(there.emulator.bin), "poll_interval": 0.4, **more}
        west = {"adapter": system, "options": options}
        daemon = Pair(slurm(east), west, tmp_path, {"pool": f"west:{queue}"})
        daemon.start()
        try:
            here = east.submit(2, nodes=1, minutes=2, seconds=5, hold=False, begin="now+15")
            said = there.ok(*submit, user="alice").strip()
            job = re.search(r"Job <(\d+)>", said)[1] if system == "lsf" else said  # type: ignore[index]
            daemon.until(lambda: len(daemon.events(ev.JobSubmitted)) == 2, what="both are seen")
            metajob = daemon.submit(time.time(), {"east": here, "west": job}, user="alice")
            there.ok(release, job, user="alice")
            daemon.reserved(metajob)
            daemon.until(lambda: len(daemon.events(ev.JobEnded)) == 2, 150, "both have run")
            begun = {event.job_id.partition(":")[0]: event.time for event in daemon.events(ev.JobStarted)}
            assert abs(begun["east"] - begun["west"]) < 3.0, begun
            daemon.until(lambda: daemon.status(metajob)["phase"] == "over", 60, "it is over")
            assert reservations({"east": east}) == []
            assert f"headway_{metajob}" not in there(show).out
            assert daemon.stop() == 0
            daemon.assert_replays()
        finally:
            daemon.clean_up()


def test_a_site_that_dies_at_any_step_of_the_search_leaves_nothing(
    clusters: dict[str, Any], daemon: Pair
) -> None:
    west = clusters["west"]
    daemon.aside = lambda: "\n".join([*reservations(clusters), daemon.ask("status", "--json")])
    daemon.start()
    outcomes = []
    for step in range(1, 6):
        already = daemon.reserves()
        metajob = daemon.submit(time.time() + 3600, {})
        daemon.until(lambda already=already, step=step: daemon.reserves() >= already + step, 60, "the step")
        west.kill("slurmctld")
        time.sleep(3)
        west.up("slurmctld")
        daemon.until(
            lambda metajob=metajob: daemon.status(metajob)["phase"] in ("reserved", "refused"), 200, "it ends"
        )
        outcomes.append((step, daemon.status(metajob)["phase"]))
        daemon.ask("cancel", metajob)
        daemon.until(
            lambda metajob=metajob: daemon.status(metajob)["phase"] == "cancelled", 200, "it is given back"
        )
        west.until(lambda: not reservations(clusters), 60, f"nothing is left after step {step}")
        assert daemon.status(metajob)["leaks"] == []
    assert len(outcomes) == 5
    assert daemon.stop() == 0
