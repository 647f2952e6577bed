"""Who requeued a job of PBS, from lines of its accounting as a real server wrote them."""

from __future__ import annotations

import subprocess
from datetime import datetime
from pathlib import Path

import pytest

from torture.history import Asked, History, Struck
from torture.pbs import Pbs
from torture.stamps import Run
from torture.stream import Wanted
from torture.system import asked
from torture.verdict import Judge

#: When it was started, and when it was requeued.
START, AGAIN = 1795437753, 1795437771
ON_REQUEST, MOM_BACK = -11, -4


class Tale:
    """Job t1 was started on pbsa and pbsb, requeued, and ran to its end in its second run."""

    def __init__(self, directory: Path, status: int) -> None:
        self.pbs = object.__new__(Pbs)
        self.pbs.root, self.pbs.nodes = directory, Pbs.hosts
        self.history = History(directory / "history.jsonl")
        self.history.want(Wanted(1, 0, 2, 4, True, 3.0))
        self.ask("submit", START - 5, True, id="1000.pbsa")
        self.runs = {
            "t1": [Run("t1", START + 0.5, None, "", ""), Run("t1", AGAIN + 5.5, AGAIN + 9, "end", "")]
        }
        home = directory / "spool/pbsa/pbs"
        self.accounting = home / "server_priv/accounting/20261123"
        for path in (self.accounting, home / "server_logs/20261123"):
            path.parent.mkdir(parents=True)
            path.touch()
        self.run(START)
        self.write(AGAIN, "R", START, f" session=717 end={AGAIN} Exit_status={status} run_count=1")
        self.run(AGAIN + 5)
        self.write(AGAIN + 9, "E", AGAIN + 5, f" session=742 end={AGAIN + 9} Exit_status=0 run_count=2")

    def run(self, at: int) -> None:
        self.write(at, "S", at, " resource_assigned.ncpus=8")

    def write(self, at: int, kind: str, start: int, more: str) -> None:
        stamp = datetime.fromtimestamp(at).strftime("%m/%d/%Y %H:%M:%S")
        with self.accounting.open("a") as file:
            file.write(
                f"{stamp};{kind};1000.pbsa;user=alice group=alice project=_pbs_project_default jobname=t1 "
                f"queue=workq ctime={START - 5} qtime={START - 5} etime={START - 5} start={start} "
                "exec_host=pbsb/0*4+pbsa/0*4 exec_vnode=(pbsb:ncpus=4)+(pbsa:ncpus=4) "
                "Resource_List.ncpus=8 Resource_List.nodect=2 Resource_List.place=scatter "
                f"Resource_List.select=2:ncpus=4{more}\n"
            )

    def ask(self, kind: str, at: float, accepted: bool | None, id: str = "") -> None:
        self.history.ask(Asked(1, kind, (), at, at + 1, accepted, "", id))

    def faults(self) -> list[str]:
        """Those that are nobody's but headway's."""
        records = self.pbs.records(self.history, self.runs)
        found = Judge(self.pbs, self.history, self.runs, records, {"t1": [START - 1, AGAIN + 4]}).all()
        return [one.kind for one in found if not one.system]


def test_a_requeue_that_a_killed_server_was_asked_for_was_its_administrators(tmp_path: Path) -> None:
    """It had asked the MoM already when it was killed; the command said "End of File"."""
    tale = Tale(tmp_path, ON_REQUEST)
    assert tale.faults() == ["requeued by nobody"]
    tale.ask("requeue", START + 8, False)
    assert tale.faults() == ["requeued by nobody"], "it was refused"
    tale.ask("requeue", AGAIN + 6, None)
    assert tale.faults() == ["requeued by nobody"], "it was asked for later"
    tale.ask("requeue", START + 9, None)
    assert tale.faults() == []


def test_what_nobody_answered_excuses_no_requeue_of_another_kind(tmp_path: Path) -> None:
    tale = Tale(tmp_path, MOM_BACK)
    tale.ask("requeue", START + 8, None)
    assert tale.faults() == ["requeued by nobody"]


def test_one_request_is_one_requeue(tmp_path: Path) -> None:
    tale = Tale(tmp_path, ON_REQUEST)
    tale.ask("requeue", START + 8, None)
    tale.run(AGAIN + 12)
    end = f" session=750 end={AGAIN + 14} Exit_status={ON_REQUEST} run_count=3"
    tale.write(AGAIN + 14, "R", AGAIN + 12, end)
    assert "requeued by nobody" in tale.faults()
    tale.ask("requeue", AGAIN + 13, True)
    assert "requeued by nobody" not in tale.faults()


def test_what_was_done_for_an_accepted_request_excuses_no_other(tmp_path: Path) -> None:
    """Two were asked for, one was done; the second requeue was the MoM's."""
    tale = Tale(tmp_path, ON_REQUEST)
    tale.ask("requeue", START + 8, None)
    tale.ask("requeue", START + 9, True)
    tale.run(AGAIN + 12)
    end = f" session=750 end={AGAIN + 14} Exit_status={MOM_BACK} run_count=3"
    tale.write(AGAIN + 14, "R", AGAIN + 12, end)
    assert "requeued by nobody" in tale.faults()


@pytest.mark.parametrize(
    ("node", "killed", "faults"),
    [
        ("pbsb", START + 1, []),
        ("pbsc", START + 1, ["requeued by nobody"]),
        ("pbsb", START - 30, ["requeued by nobody"]),
        ("pbsb", AGAIN + 3, ["requeued by nobody"]),
    ],
)
def test_a_start_that_its_node_lost_before_the_job_could_say_so_is_the_nodes(
    tmp_path: Path, node: str, killed: float, faults: list[str]
) -> None:
    tale = Tale(tmp_path, MOM_BACK)
    del tale.runs["t1"][0]
    assert tale.faults() == ["requeued by nobody"]
    tale.history.strike(Struck(f"node:{node}", killed, killed + 1))
    assert tale.faults() == faults


def test_a_node_that_was_killed_once_lost_a_job_once(tmp_path: Path) -> None:
    tale = Tale(tmp_path, MOM_BACK)
    tale.history.strike(Struck("node:pbsb", START + 1, START + 2))
    assert tale.faults() == []
    tale.run(AGAIN + 12)
    end = f" session=750 end={AGAIN + 14} Exit_status={MOM_BACK} run_count=3"
    tale.write(AGAIN + 14, "R", AGAIN + 12, end)
    assert "requeued by nobody" in tale.faults()


def test_what_no_mom_knows_is_requeued_by_force(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Job 1 runs; the MoM of job 2 was killed before it had saved it; job 22 is slow to begin."""
    told = {"1.pbsa": "substate = 42", "2.pbsa": "substate = 41", "22.pbsa": "substate = 41"}
    kept = tmp_path / "spool/pbsb/pbs/mom_priv/jobs"
    kept.mkdir(parents=True)
    (kept / "22.pbsa.JB").touch()
    called: list[tuple[str, ...]] = []

    def call(self: Pbs, *argv: str) -> subprocess.CompletedProcess[str]:
        called.append(argv)
        return subprocess.CompletedProcess(argv, 0, f"    job_state = R\n    {told[argv[-1]]}\n", "")

    monkeypatch.setattr(Pbs, "call", call)
    pbs = object.__new__(Pbs)
    pbs.root = tmp_path
    assert "requeued 2.pbsa" in pbs.mend_stuck(dict.fromkeys(told, "R") | {"3.pbsa": "Q"})
    assert [argv for argv in called if argv[0] == "qrerun"] == [("qrerun", "-W", "force", "2.pbsa")]


@pytest.mark.parametrize(
    ("code", "text", "accepted"),
    [
        (0, "", True),
        (183, "qrerun: End of File 1000.pbsa", None),
        (161, "qrerun: Response timed out. Job rerun request still in progress for 1000.pbsa", None),
        (1, "Unexpected error: Zero Bytes were transmitted or received", None),
        (143, "qdel: Server could not connect to MOM 5[2].pbsa", None),
        (162, "qrerun: cannot connect to server pbsa (errno=15010)", False),
        (168, "qrerun: Request invalid for state of job 1000.pbsa", False),
    ],
)
def test_a_server_that_was_gone_before_its_answer_refused_nothing(
    code: int, text: str, accepted: bool | None
) -> None:
    assert asked(subprocess.CompletedProcess([], code, "", text)).accepted is accepted
