"""The fence on a real OpenPBS: what a daemon starts after another has taken over is refused by the hook."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from batch_servers import BatchServer
from real_systems import Pbs
from waiting import HANG

from headway import decisions as d
from headway import events as ev
from headway.errors import Superseded
from headway.inputs.shipped import shipped
from headway_adapters.pbs import PbsAdapter
from headway_adapters.pbs.fence import INSTALL
from headway_adapters.polling import fence

pytestmark = [pytest.mark.pbs, pytest.mark.waits]


@pytest.fixture(scope="module")
def site(batch_server_factory: Callable[..., BatchServer]) -> Iterator[Pbs]:
    # One of its own: what the fence needs stays in a server that has run jobs with it.
    server = batch_server_factory("pbs")
    with tempfile.TemporaryDirectory(prefix="hw-pbs-") as directory:
        one = Pbs(server, Path(directory))
        hook = Path(directory) / "headway_fence.py"
        hook.write_text(shipped("pbs/headway_fence.py").read_text())
        for line in INSTALL:
            order = line.removeprefix('qmgr -c "').removesuffix('"').replace(hook.name, str(hook))
            server.run("qmgr", "-c", order, user="root")
        yield one
        one.close()


def adapter(site: Pbs) -> PbsAdapter:
    """An adapter outside, whose commands run inside."""
    return PbsAdapter(site.options(bin_dir=str(site.server.root / "bin")))


def sees(one: PbsAdapter, job: str, kind: type[ev.Event] = ev.JobSubmitted) -> None:
    """Wait until the adapter tells of the job."""
    end = time.monotonic() + HANG
    while time.monotonic() < end:
        moment = one.wait(time.time() + 1.0)
        assert moment is not None
        for event in moment[1]:
            about: Any = getattr(event, "job", None)
            if isinstance(event, kind) and job == (about.id if about else getattr(event, "job_id", "")):
                return
    raise AssertionError(f"no {kind.__name__} of {job}")


def start(one: PbsAdapter, job: str) -> Any:
    return one.apply(time.time(), [d.Start(job, (("pbsb", 1),), reason="test")])[0]


def test_a_late_start_is_refused_and_its_daemon_ends(site: Pbs) -> None:
    with adapter(site) as first, adapter(site) as second:
        first.describe()
        before = first.highest_epoch(above=0).epoch
        first.lead(before + 1, "first")
        jobs = [site.submit(1, 1, minutes=1) for _ in range(4)]
        sees(first, jobs[3])
        assert start(first, jobs[0]).accepted
        sees(first, jobs[0], ev.JobStarted)

        # The first is paused here, with a plan; another takes over.
        second.describe()
        assert second.highest_epoch(above=0).epoch == before + 1
        second.lead(before + 2, "second")
        sees(second, jobs[3])
        site.server.kill("server", "-9")
        site.server.restart("server")

        outcome = start(first, jobs[1])
        assert not outcome.accepted and f"headway fence: epoch={before + 2}" in outcome.message
        assert site.waits(jobs[1])
        with pytest.raises(Superseded, match=f"PBS knows epoch {before + 2}"):
            first.wait(None)
        outcome = start(second, jobs[1])
        assert outcome.accepted, outcome
        sees(second, jobs[1], ev.JobStarted)
        # People by hand, and PBS's own scheduler, carry no number.
        site.server.run("qrun", "-H", "(pbsc:ncpus=1)", jobs[2])
        found = {check.subject: check for check in second.check()}
        assert found["fence"].ok and f"epoch {before + 2}" in found["fence"].detail

    with adapter(site) as late:
        late.describe()
        with pytest.raises(Superseded):
            late.lead(before + 2, "late")


def test_what_no_hook_sees_comes_after_a_question_and_users_forge_nothing(
    site: Pbs, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Else a moment is enough.
    monkeypatch.setattr(fence, "SURE", 0.0)
    with adapter(site) as first, adapter(site) as second:
        first.describe()
        epoch = first.highest_epoch(above=None).epoch + 1
        first.lead(epoch, "first")
        job = site.submit(1, 60, minutes=5)
        sees(first, job)
        for order in ("headway_epoch = 99", "headway_leader = me"):
            done = site.server.call("qmgr", "-c", f"set server resources_available.{order}", user="alice")
            assert done.returncode
        assert site.server.call("qrun", "-H", "(pbsb:ncpus=1:headway_epoch=99)", job, user="alice").returncode
        asked = ("qsub", "-l", "select=1:headway_epoch=99", "--", "/bin/true")
        assert site.server.call(*asked, user="alice").returncode
        assert first.highest_epoch(above=None).epoch == epoch
        second.describe()
        second.lead(epoch + 1, "second")
        assert not first.apply(time.time(), [d.Cancel(job, reason="late")])[0].accepted
        assert site.waits(job)
        with pytest.raises(Superseded):
            first.wait(None)
