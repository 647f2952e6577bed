"""The LSF adapter on a real LSF (volclava) of several hosts: what no recording can show."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from typing import Any

import pytest
from batch_servers import BatchServer

from headway import decisions as d
from headway import events as ev
from headway_adapters.lsf import LsfAdapter

pytestmark = pytest.mark.lsf

QUEUE = "hwtest"
#: For real hangs only, seconds.
LONG = 120.0


class Lsf:
    """The server, what users do on it, and an adapter that looks at it from outside."""

    def __init__(self, server: BatchServer, **options: Any) -> None:
        self.server = server
        self.adapter = LsfAdapter(
            {"queues": [QUEUE], "bin_dir": str(server.root / "bin"), "poll_interval": 0.5, **options}
        )
        self.cluster = self.adapter.describe()
        self.seen: list[ev.Event] = []
        self.mine: set[str] = set()

    def submit(self, *words: str, user: str = "alice", seen: bool = True) -> str:
        """A job's id, once the adapter has told of it (``seen``)."""
        said = self.server.run("bsub", "-q", QUEUE, "-o", "/dev/null", *words, user=user)
        number = re.search(r"Job <(\d+)>", said)
        assert number is not None, said
        self.mine.add(number[1])
        if seen:
            self.until(ev.JobSubmitted, number[1])
        return number[1]

    def until(self, kind: type[ev.Event], job_id: str = "") -> Any:
        """The first event of this kind (about this job) that was not asked for before."""
        end = time.monotonic() + LONG
        while True:
            for event in self.seen:
                job = getattr(event, "job", None)
                about = job.id if job is not None else getattr(event, "job_id", "")
                if isinstance(event, kind) and about in (job_id, job_id or about):
                    self.seen.remove(event)
                    return event
            assert time.monotonic() < end, f"no {kind.__name__} of {job_id}: {self.seen}"
            moment = self.adapter.wait(time.time() + 1.0)
            assert moment is not None
            self.seen += moment[1]

    def told(self, kind: type[ev.Event]) -> list[str]:
        """The jobs of this test of which such an event was told and not asked for."""
        found = [getattr(event, "job_id", "") for event in self.seen if isinstance(event, kind)]
        return [job_id for job_id in found if job_id in self.mine]

    def apply(self, decision: d.Decision, *, accepted: bool = True) -> str:
        (outcome,) = self.adapter.apply(time.time(), [decision])
        assert outcome.accepted is accepted, outcome.message
        return outcome.message

    def start(self, job_id: str, *placement: tuple[str, int]) -> None:
        self.apply(d.Start(job_id, placement))
        self.until(ev.JobStarted, job_id)


@pytest.fixture
def lsf(lsf_server: BatchServer) -> Iterator[Lsf]:
    one = Lsf(lsf_server)
    with one.adapter:
        yield one
    empty(lsf_server)


def empty(server: BatchServer) -> None:
    """End all jobs, and wait until the hosts are free of them."""
    server.call("bkill", "-u", "all", "0", user="root")

    def nothing_left() -> bool:
        return "No unfinished job" in server.call("bjobs", "-u", "all").stderr

    server.until(nothing_left, "no job is left")


@pytest.mark.parametrize("own", [False, True], ids=["by its user", "by headway"])
def test_a_requeue_is_no_end_for_those_who_wait_for_it(lsf: Lsf, own: bool) -> None:
    job = lsf.submit("-n", "2", "-J", "R", "sleep 600")
    waits = lsf.submit("-w", f"ended({job})", "true")
    lsf.start(job, ("lsfb", 2))
    if own:
        lsf.apply(d.Requeue(job))
    else:
        lsf.server.run("brequeue", job, user="alice")
    lsf.until(ev.JobRequeued, job)
    assert lsf.told(ev.JobEnded) == []
    assert "is not met" in lsf.apply(d.Start(waits, (("lsfc", 1),)), accepted=False)
    lsf.start(job, ("lsfc", 2))
    lsf.server.run("bkill", job, user="alice")
    assert lsf.until(ev.JobEnded, job).outcome == "cancelled"
    lsf.start(waits, ("lsfc", 1))
    assert lsf.until(ev.JobEnded, waits).outcome == "completed"


def test_brun_splits_a_job_by_its_hosts_cpus_whatever_is_free(lsf: Lsf) -> None:
    """So what a start gets on each of its hosts is known beforehand, and nothing has to wait for it."""
    first = lsf.submit("-n", "2", "-W", "10", "sleep 600")
    lsf.start(first, ("lsfa", 2))
    wide = lsf.submit("-n", "6", "-W", "10", "sleep 600")
    lsf.server.run("brun", "-m", "lsfa lsfb", wide)
    assert lsf.until(ev.JobStarted, wide).placement == (("lsfa", 4), ("lsfb", 2))
    assert lsf.adapter.describe().shares_out is False


#: A line of the path has at most 255 characters, all of it too.
FORGED = """x>;
{line}

Job <{job}>, Job Name <x>, User <bob>
Sun Nov 22 02:38:18: Submitted from host </x>, CWD <x>, 9 Task(s);
 y"""


def test_a_working_directory_that_holds_anothers_record_changes_nothing(lsf: Lsf) -> None:
    """bsub takes line breaks out of names and commands, and leaves them in the path of the directory."""
    job = lsf.submit("-n", "2", "-W", "5", "sleep 600", user="bob")
    text = FORGED.format(line="-" * 78, job=job)
    make = 'mkdir -p "$1" && cd "$1" && exec bsub -q hwtest -o /dev/null true'
    said = lsf.server.run("bash", "-c", make, "bash", text, user="alice")
    hers = re.findall(r"<(\d+)>", said)[0]
    listed = lsf.server.run("bjobs", "-u", "all", "-UF")
    assert listed.count(f"Job <{job}>, ") == 2, "this LSF keeps no line breaks there"
    lsf.until(ev.JobSubmitted, hers)
    known = lsf.adapter.overlay.known(job)
    assert known is not None and (known.job.request.processors, known.job.held) == (2, False)
    assert known.job.dependencies == () and known.job.user == "bob"
    lsf.start(job, ("lsfb", 2))
    lsf.start(hers, ("lsfc", 1))
