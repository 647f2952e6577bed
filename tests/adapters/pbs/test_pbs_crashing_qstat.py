"""Jobs at which ``qstat`` itself crashes cost themselves a look, and nobody else."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from pbs_recorded import job
from pretended import events, result
from pretended_pbs import RUNS, PretendedPbs, adapter

from headway import events as ev
from headway_adapters.pbs import PbsOptions
from headway_adapters.pbs.client import PbsClient
from headway_adapters.pbs.give_back import PbsGivingBack
from headway_adapters.pbs.listings import CRASHES
from headway_adapters.transport import Result

#: Ended by SIGSEGV here, in a shell, and behind SSH.
WAYS: dict[str, dict[str, Any]] = {
    "here": {"rc": -11}, "in a shell": {"rc": 139}, "over SSH": {"rc": 255, "cut": True, "signalled": True},
}  # fmt: skip


class Crashing(PretendedPbs):
    """Its qstat crashes where it is to show one of some jobs."""

    def __init__(self, crashing: set[str], way: str = "here") -> None:
        super().__init__()
        self.crashing = crashing
        self.crash = WAYS[way]

    def run(self, argv: Any, timeout: float) -> Result:
        words = tuple(argv)
        if words == ("qselect",):
            self.said.append(words)
            tops = {key.replace("[1]", "[]") for key in self.jobs} | (self.crashing & set(self.jobs))
            return result(words, "".join(f"{key}\n" for key in sorted(tops)))
        asked = {word for word in words[1:] if word[0].isdigit()}
        if words[0] == "qstat" and "-f" in words and not {"-B", "-Q"} & set(words):
            known = {**self.gone, **self.jobs} if "-x" in words else self.jobs
            if (asked & set(known) if asked else set(known)) & self.crashing:
                self.said.append(words)
                return Result(argv=words, stdout=b"Job Id: 1.pbs", stderr="", seconds=0.1, **self.crash)
        return super().run(argv, timeout)


def told(found: list[ev.Event], kind: type[ev.Event]) -> set[str]:
    return {e.job.id if isinstance(e, ev.JobSubmitted) else e.job_id for e in found if isinstance(e, kind)}  # type: ignore[attr-defined]


@pytest.mark.parametrize("way", WAYS)
def test_the_others_are_seen_and_start_and_end(way: str) -> None:
    pbs = Crashing({"7.pbshost"}, way)
    pbs.jobs |= {f"{number}.pbshost": job() for number in range(3, 40)}
    with adapter(pbs) as one:
        one.describe()
        found = events(one)
        assert told(found, ev.JobSubmitted) == set(pbs.jobs) - {"7.pbshost"}
        assert not one.outages()
        # From now on it is known: two commands more than usual a look at most.
        pbs.said.clear()
        del pbs.jobs["9.pbshost"]
        pbs.gone["9.pbshost"] = job(job_state="F", Exit_status=0, stime="Sat Nov 21 06:33:00 2026")
        assert told(events(one), ev.JobEnded) == {"9.pbshost"}
        assert not any(words[:2] == ("qstat", "-t") and not words[-1][0].isdigit() for words in pbs.said)
        # Once it is gone all is as before.
        del pbs.jobs["7.pbshost"]
        events(one)
        pbs.said.clear()
        events(one)
        assert ("qselect",) not in pbs.said


def test_one_that_ran_before_stays_as_it_was_until_it_is_gone() -> None:
    pbs = Crashing(set())
    with adapter(pbs) as one:
        one.describe()
        assert told(events(one), ev.JobStarted) == {"2.pbshost"}
        pbs.crashing = {"2.pbshost"}
        assert not [e for e in events(one) if not isinstance(e, ev.Tick)]
        pbs.gone["2.pbshost"] = pbs.jobs.pop("2.pbshost")
        (ended,) = [e for e in events(one) if isinstance(e, ev.JobEnded)]
        assert (ended.job_id, ended.outcome) == ("2.pbshost", "vanished")


def test_a_crowd_of_them_costs_a_look_a_bounded_number_of_commands() -> None:
    bad = {f"{number}.pbshost" for number in range(100, 400)}
    pbs = Crashing(bad)
    pbs.jobs |= {key: job() for key in bad}
    with adapter(pbs) as one:
        one.describe()
        seen = set()
        for _ in range(200):
            pbs.said.clear()
            seen |= told(events(one, 0.06), ev.JobSubmitted)
            assert len(pbs.said) < 200
            if seen >= {"1.pbshost", "2.pbshost"}:
                break
        assert seen == {"1.pbshost", "2.pbshost"}


def test_the_elements_of_such_an_array_stay_as_they_were() -> None:
    pbs = Crashing(set())
    pbs.jobs |= {
        "5[].pbshost": job(job_state="B", array=True),
        "5[1].pbshost": job(**RUNS, exec_vnode="(pbshost[1]:ncpus=1)"),
    }
    with adapter(pbs) as one:
        one.describe()
        assert "5[1].pbshost" in told(events(one), ev.JobStarted)
        pbs.crashing = {"5[].pbshost"}
        assert not told(events(one), ev.JobEnded)


def test_give_back_names_it() -> None:
    pbs = Crashing({"1.pbshost"})
    pbs.jobs["3.pbshost"] = job(job_state="H", Hold_Types="s")
    giving = PbsGivingBack(PbsOptions(queues=("workq",)))
    giving.client = PbsClient(PbsOptions(queues=("workq",)), read_only=False, transport=pbs)
    given = itertools.islice(giving.give_back(("workq",), lambda: True), 10)
    named = {one.name: one.said for one in given}
    assert CRASHES in named["1.pbshost"] and "qrls" in named["3.pbshost"]
