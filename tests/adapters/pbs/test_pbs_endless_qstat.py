"""With a large array a listing of all jobs may not end (OpenPBS 23.06): jobs are asked for by ids."""

from __future__ import annotations

from typing import Any

import pytest
from pbs_recorded import job
from pretended import events, result
from pretended_pbs import RUNS, PretendedPbs, adapter, listed
from waiting import until

from headway import events as ev
from headway_adapters.transport import Result


class Repeating(PretendedPbs):
    """While ``begun`` its array of 500 is listed without end, unless jobs are named."""

    def __init__(self, cut: dict[str, Any]) -> None:
        super().__init__()
        self.begun = False
        self.cut = cut
        self.elements = {f"9[{number}].pbshost": job() for number in range(1, 501)}
        self.jobs |= {"9[].pbshost": job(job_state="B", array="True"), **self.elements}

    def run(self, argv: Any, timeout: float) -> Result:
        words = tuple(argv)
        if words == ("qselect",):
            self.said.append(words)
            return result(words, "".join(f"{key}\n" for key in self.jobs if key not in self.elements))
        named = {word for word in words[1:] if word[0].isdigit()}
        if words[0] == "qstat" and "-t" in words and "-x" not in words:
            self.said.append(words)
            if not named and self.begun and "9[].pbshost" in self.jobs:
                return Result(argv=words, rc=124, stdout=b"Job Id: 9[", stderr="", seconds=0.1, **self.cut)
            shown = self.elements.keys() if not named or "9[].pbshost" in named else set()
            return result(
                words, listed({k: r for k, r in self.jobs.items() if not named or k in named | shown}, words)
            )
        return super().run(argv, timeout)


def unending(pbs: PretendedPbs) -> int:
    """How often all jobs were listed."""
    return sum(words[0] == "qstat" and "-t" in words and not words[-1][0].isdigit() for words in pbs.said)


@pytest.mark.parametrize("cut", [{"timed_out": True}, {"too_long": True}], ids=str)
def test_a_daemon_that_begins_with_such_an_array_sees_all_its_jobs(cut: dict[str, Any]) -> None:
    pbs = Repeating(cut)
    pbs.begun = True
    with adapter(pbs) as one:
        one.describe()
        found = {event.job.id for event in events(one) if isinstance(event, ev.JobSubmitted)}
        assert sorted(found - pbs.elements.keys()) == ["1.pbshost", "2.pbshost"]
        assert len(found) == 502
        assert not one.outages()
    assert unending(pbs) == 1, "it is asked for once, and not with each look"


def test_before_a_large_array_begins_its_jobs_are_asked_for_by_ids() -> None:
    pbs = Repeating({"timed_out": True})
    with adapter(pbs) as one:
        one.describe()
        events(one)
        pbs.begun = True
        pbs.jobs["9[1].pbshost"].update(RUNS, exec_vnode="(pbshost[1]:ncpus=1)")
        assert [event.job_id for event in events(one) if isinstance(event, ev.JobStarted)] == ["9[1].pbshost"]
        assert unending(pbs) == 1
        # Once it is gone, a look takes as many commands as ever.
        for key in [*pbs.elements, "9[].pbshost"]:
            del pbs.jobs[key]

        def as_ever() -> bool:
            pbs.said.clear()
            events(one)
            return ("qselect",) not in pbs.said

        until(as_ever, "all jobs are listed in one command again")
