"""The adapter against a pretended LSF: what it refuses, outages, nonsense, monitor mode, lost jobs."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pretended
import pytest
from recorded_lsf import at, output, result
from structlog.testing import capture_logs
from waiting import HANG, bound, until

from headway import decisions as d
from headway import events as ev
from headway.errors import Failure, UserError
from headway.model import ClusterDescription, Reservation
from headway_adapters.lsf import LsfAdapter, LsfOptions
from headway_adapters.lsf.client import LsfClient, environment, only_reads
from headway_adapters.transport import Result, Transport

SEPARATOR = "-" * 78 + "\n"
IBM = "IBM Spectrum LSF Standard 10.1.0.13, Apr 15 2022\n\nMy cluster name is c1\nMy master name is h1\n"


@dataclass
class Told:
    """A job as the pretended LSF has it."""

    stat: str = "PEND"
    hosts: str = "-"
    asked: str = ""
    queue: str = "normal"
    name: str = "x"
    started: str = "Sat Nov 21 06:39:00"
    end: str = ""
    extra: str = ""


@dataclass
class PretendedLsf(Transport):
    """Two hosts of two slots; ``answer`` overrides any command."""

    jobs: dict[str, Told] = field(default_factory=dict)
    ibm: bool = False
    queue_status: str = "Open:Inact_Adm"
    hosts: dict[str, str] = field(default_factory=lambda: {"h1": "ok", "h2": "ok"})
    extra_used: dict[str, int] = field(default_factory=dict)
    history: str = ""
    said: list[tuple[str, ...]] = field(default_factory=list)
    answer: Callable[[tuple[str, ...]], Result | None] = lambda argv: None

    def run(self, argv: Sequence[str], timeout: float) -> Result:
        words = tuple(argv)
        self.said.append(words)
        return self.answer(words) or self._answer(words)

    def _answer(self, argv: tuple[str, ...]) -> Result:
        if argv[1:] == ("-V",):
            return done(argv)
        name = argv[0]
        if name == "lsid":
            return done(argv, IBM if self.ibm else output("lsid"))
        if name == "bqueues":
            blocks = [f"\nQUEUE: {q}\nPRIO NICE STATUS\n 30 20 {self.queue_status}\nHOSTS:  all\n"
                      for q in ("normal", "other")]  # fmt: skip
            return done(argv, "".join(blocks))
        if name == "lshosts":
            rows = [f"{h} X86_64 M 1.0 2 1000M - Yes ()" for h in self.hosts]
            return done(
                argv, "\n".join(["HOST_NAME type model cpuf ncpus maxmem maxswp server RESOURCES", *rows])
            )
        if name == "bhosts":
            return self._bhosts(argv)
        if name == "bjobs":
            return self._bjobs(argv)
        if name == "bhist":
            return done(argv, self.history)
        if name == "badmin" and argv[1] == "showconf":
            return done(argv, "\tLSB_MOD_ALL_JOBS = Y\n")
        return done(argv)

    def _bhosts(self, argv: tuple[str, ...]) -> Result:
        if "-json" in argv:
            return done(argv, rc=255, stderr="bhosts: invalid option -- 'o'")
        used = {h: self.extra_used.get(h, 0) for h in self.hosts}
        for job in self.jobs.values():
            if job.stat in ("RUN", "USUSP", "SSUSP"):
                for h in job.hosts.split(":") if job.hosts != "-" else ():
                    used[h] += 1
        rows = [f"{h} {s} - 2 {used[h]} {used[h]} 0 0 0" for h, s in self.hosts.items()]
        return done(argv, "\n".join(["HOST_NAME STATUS JL/U MAX NJOBS RUN SSUSP USUSP RSV", *rows]))

    def _bjobs(self, argv: tuple[str, ...]) -> Result:
        if "jobid user" in argv:
            listed = [{"JOBID": j.partition("[")[0], "USER": "alice"} for j in self.jobs]
            return done(argv, json.dumps({"COMMAND": "bjobs", "JOBS": len(listed), "RECORDS": listed}))
        if "-json" in argv:
            return done(argv, rc=99, stderr="<JOBINDEX> in the format string is not a valid field name.")
        wanted = [word for word in argv[1:] if word[0].isdigit()]
        shown = {j: job for j, job in self.jobs.items() if not wanted or j in wanted}
        if not shown:
            return done(argv, rc=255, stderr="No job found")
        if "-w" in argv:
            head = "JOBID   USER    STAT  QUEUE      FROM_HOST   EXEC_HOST   JOB_NAME   SUBMIT_TIME\n"
            rows = [f"{j.partition('[')[0]:<7} alice   {job.stat:<5} {job.queue:<10} h1          {job.hosts} "
                    f"{job.name} Nov 21 06:38\n" for j, job in shown.items()]  # fmt: skip
            return done(argv, head + "".join(rows), rc=255 if len(shown) < len(wanted) else 0)
        return done(argv, SEPARATOR.join(self._record(j, job) for j, job in shown.items()) + "\n")

    def _record(self, number: str, job: Told) -> str:
        text = f"\nJob <{number}>, Job Name <{job.name}>, User <alice>, Project <p>, Status <{job.stat}>, "
        text += f"Queue <{job.queue}>, Command <c>\n"
        text += f"Sat Nov 21 06:38:50: Submitted from host <h1>, CWD </tmp>{job.asked};\n"
        if job.hosts != "-":
            text += f"{job.started}: Started 1 Task(s) on Host(s) <{job.hosts}>;\n"
        return text + (f"{job.end}\n" if job.end else "") + job.extra

    def commands(self, *names: str) -> list[str]:
        """The commands of these names that were run, as lines."""
        return [" ".join(argv) for argv in self.said if argv[0] in names]


def done(argv: tuple[str, ...], stdout: str = "", rc: int = 0, stderr: str = "") -> Result:
    if stdout and not stdout.endswith("\n"):
        stdout += "\n"
    return pretended.result(argv, stdout, rc, stderr)


def hangs(argv: tuple[str, ...]) -> Result:
    said = "batch system daemon not responding ... still trying\n"
    return Result(argv=argv, rc=124, stdout=b"", stderr=said, seconds=15.0, timed_out=True)


@pytest.fixture
def lsf() -> PretendedLsf:
    return PretendedLsf({"5": Told(), "6": Told("RUN", "h1")})


class Clock:
    """Goes on from the time of the recorded listings."""

    def __init__(self) -> None:
        self._began = time.time()

    def __call__(self) -> float:
        return at(6, 39, 10) + time.time() - self._began


def adapter(lsf: PretendedLsf, **fields: Any) -> LsfAdapter:
    read_only = fields.pop("read_only", False)
    options = LsfOptions(
        **{
            "queues": ("normal",),
            "poll_interval": 0.05,
            "confirm_interval": 0.02,
            "start_timeout": 0.3,
            **fields,
        }
    )
    return LsfAdapter(options, read_only=read_only, transport=lsf, clock=Clock())


#: Seconds for which a look may be late.
BUSY = 10.0


def events(one: LsfAdapter, seconds: float = 0.25) -> list[ev.Event]:
    """All that is told within so long, and on a busy machine until a look that began meanwhile is in."""
    found: list[ev.Event] = []
    began = time.monotonic()
    end = began + seconds
    while (now := time.monotonic()) < end or (now < end + BUSY and not _looked(one, began)):
        moment = one.wait(one._clock() + max(end - now, 0.02))
        assert moment is not None
        found += moment[1]
    return found


def events_until(one: LsfAdapter, kind: type[ev.Event]) -> list[ev.Event]:
    """All that is told until one of this kind is."""
    found = events(one)
    end = time.monotonic() + HANG
    while not any(isinstance(event, kind) for event in found):
        assert time.monotonic() < end, found
        found += events(one)
    return found


def _looked(one: LsfAdapter, since: float) -> bool:
    return one._looker.began >= since and not one._looker.is_looking


def ready(lsf: PretendedLsf, **fields: Any) -> LsfAdapter:
    """An adapter that has looked once."""
    one = adapter(lsf, **fields)
    one.describe()
    events(one, 0.1)
    return one


@pytest.fixture
def running(lsf: PretendedLsf) -> Iterator[LsfAdapter]:
    with ready(lsf) as one:
        lsf.said.clear()
        yield one


def refused(one: LsfAdapter, decision: d.Decision) -> str:
    (outcome,) = one.apply(one._clock(), [decision])
    assert not outcome.accepted
    failures = [e for e in events(one, 0.1) if isinstance(e, ev.DecisionFailed)]
    assert [e.message for e in failures] == [outcome.message]
    return outcome.message


# ---------------------------------------------------------------------- what it is


def test_a_cluster_is_described(lsf: PretendedLsf) -> None:
    with adapter(lsf) as one:
        cluster = one.describe()
        assert cluster.name == "volclava"
        assert [(pool.name, pool.open) for pool in cluster.pools] == [("normal", True), ("other", False)]
        assert [(node.name, node.processors) for node in cluster.nodes] == [("h1", 2), ("h2", 2)]
        told = events(one, 0.1)
    assert {e.job.id for e in told if isinstance(e, ev.JobSubmitted)} == {"5", "6"}
    assert [e.job_id for e in told if isinstance(e, ev.JobStarted)] == ["6"]


def test_what_a_flavour_lacks_is_a_missing_capability(lsf: PretendedLsf) -> None:
    with ready(lsf) as one:
        lacking = {d.SetTimeLimit, d.Reserve, d.Unreserve, d.PowerDown, d.PowerUp, d.SetFrequency}
        assert not lacking & one.capabilities and d.Start in one.capabilities
        said = refused(one, d.Reserve(Reservation("r", 0.0, 1.0, nodes=("h1",))))
        assert said == "Reserve cannot be carried out on volclava 2.2: brsvadd is IBM Spectrum LSF's"
        said = refused(one, d.SetTimeLimit("6", 600.0))
        assert said.endswith("on volclava 2.2: it refuses to change the limit of a running job")
    lsf.ibm = True
    with adapter(lsf) as one:
        assert {d.SetTimeLimit, d.Reserve, d.Unreserve} <= one.capabilities
        assert not {d.PowerDown, d.SetFrequency} & one.capabilities
    with adapter(lsf, power=True, running_limits="no") as one:
        assert d.PowerDown in one.capabilities and d.SetTimeLimit not in one.capabilities


def test_what_can_be_said_without_asking(lsf: PretendedLsf) -> None:
    flat = ClusterDescription.flat(1)
    assert d.Reserve in LsfAdapter.capable_of(flat)
    options = {"queues": ["normal"], "flavour": "openlava"}
    assert not {d.Reserve, d.SetTimeLimit, d.PowerDown} & LsfAdapter.capable_of(flat, options)
    options["flavour"] = "ibm"
    assert {d.Reserve, d.SetTimeLimit} <= LsfAdapter.capable_of(flat, options)
    assert d.PowerDown not in LsfAdapter.capable_of(flat, options)
    assert d.PowerDown in LsfAdapter.capable_of(flat, {**options, "power": True})
    # The configuration's word counts more than lsid's.
    with adapter(lsf, flavour="ibm") as one:
        assert d.Reserve in one.capabilities


def test_site_commands_for_frequencies_are_a_capability_everywhere(lsf: PretendedLsf) -> None:
    frequency = {"set_frequency": ("setfreq", "{node}", "{hertz}")}
    with adapter(lsf, actuators=frequency) as one:
        assert d.SetFrequency in one.capabilities
    sleep = {"power_down": ("off", "{node}"), "power_up": ("on", "{node}")}
    with adapter(lsf, actuators=sleep) as one, pytest.raises(UserError, match="needs IBM Spectrum LSF"):
        one.describe()
    lsf.ibm = True
    with adapter(lsf, actuators=sleep) as one:
        assert d.PowerDown in one.capabilities
    with pytest.raises(UserError, match="one of the two ways to sleep"):
        LsfAdapter({"queues": ["normal"], "power": True, "actuators": sleep}, transport=lsf)


def test_as_long_as_lsf_is_silent_everything_is_thought_possible(lsf: PretendedLsf) -> None:
    lsf.answer = hangs
    with adapter(lsf) as one:
        assert d.Reserve in one.capabilities
        with pytest.raises(Failure, match="did not answer within 15 s"):
            one.describe()
        lsf.answer = lambda argv: None
        one.describe()
        assert d.Reserve not in one.capabilities


def test_a_queue_that_does_not_exist_is_the_users_mistake(lsf: PretendedLsf) -> None:
    said = r"cluster.options.queues: LSF has no queue 'night'. Known: normal, other"
    with adapter(lsf, queues=("night",)) as one, pytest.raises(UserError, match=said):
        one.describe()


@pytest.mark.parametrize(
    ("options", "key"),
    [
        ({}, "queues"), ({"queues": []}, "queues"), ({"queues": ["a b"]}, "queues"),
        ({"queues": ["-a"]}, "queues"),
        ({"queues": ["a", "a"]}, "queues"), ({"queues": ["a"], "poll_interval": 0}, "poll_interval"),
        ({"queues": ["a"], "environment": {"LD_PRELOAD": "x"}}, "environment"),
        ({"queues": ["a"], "x": 1}, "x"),
    ],
)  # fmt: skip
def test_wrong_options_name_their_key(options: dict[str, Any], key: str) -> None:
    with pytest.raises(UserError, match=rf"cluster\.options: {key}: "):
        LsfAdapter(options)


def test_commands_run_in_utc_with_the_sites_environment() -> None:
    options = LsfOptions(queues=("normal",), environment={"LSF_ENVDIR": "/opt/lsf/conf"})
    assert environment(options) == {"TZ": "UTC", "LSF_ENVDIR": "/opt/lsf/conf"}


# ---------------------------------------------------------------------- starts


def test_a_start_is_forced_and_confirmed_by_the_next_looks(lsf: PretendedLsf, running: LsfAdapter) -> None:
    assert running.apply(running._clock(), [d.Start("5", (("h2", 1),))])[0].accepted
    assert lsf.commands("brun") == ["brun -m h2 5"]
    # Right before, it was looked whether the job is still pending.
    assert lsf.said[lsf.said.index(("brun", "-m", "h2", "5")) - 1] == ("bjobs", "-a", "-w", "5")
    lsf.jobs["5"] = Told("RUN", "h2", started="Sat Nov 21 06:39:11")
    (started,) = (e for e in events(running) if isinstance(e, ev.JobStarted))
    assert (started.job_id, started.placement) == ("5", (("h2", 1),))


@pytest.mark.parametrize(
    ("job", "why"),
    [
        (Told("PSUSP"), "held (PSUSP)"),
        (Told(asked=", Dependency Condition <done(6)>"), "its dependency 'done(6)' is not met"),
        (Told(asked=", Specified Start Time <Sat Nov 21 23:50:00>"), "its begin time has not come"),
        (Told(queue="other"), "not managed by headway"),
        (Told("RUN", "h2"), "not pending in the last listing"),
        (Told(asked=", 2 Task(s)"), "it asks for 2 slots, not for 1"),
    ],
)
def test_what_lsf_would_start_wrongly_is_refused_here(job: Told, why: str) -> None:
    lsf = PretendedLsf({"5": job, "6": Told("RUN", "h1")})
    with ready(lsf) as one:
        assert why in refused(one, d.Start("5", (("h2", 1),)))
    assert lsf.commands("brun") == []


def test_a_job_starts_at_the_very_second_of_its_begin_time() -> None:
    lsf = PretendedLsf(
        {"5": Told(asked=", Specified Start Time <Sat Nov 21 06:39:11>"), "6": Told("RUN", "h1")}
    )
    # One look only, and it was before that second.
    with ready(lsf, poll_interval=60) as one:
        assert "its begin time has not come" in refused(one, d.Start("5", (("h2", 1),)))
        time.sleep(max(0.0, at(6, 39, 11) - one._clock()))
        assert one.apply(one._clock(), [d.Start("5", (("h2", 1),))])[0].accepted
    assert lsf.commands("brun") == ["brun -m h2 5"]


@pytest.mark.parametrize(
    ("starts", "why"),
    [
        ([("5", (("h1", 2),))], "has 1 slots free, not 2"),
        ([("5", (("h1", 1),)), ("7", (("h1", 1),))], "has 0 slots free, not 1"),
        ([("5", (("h3", 1),))], "is not a host of the managed queues"),
    ],
)
def test_a_full_host_is_refused_since_lsf_would_overload_it(
    lsf: PretendedLsf, starts: list[tuple[str, Any]], why: str
) -> None:
    lsf.jobs["7"] = Told()
    with ready(lsf) as one:
        outcomes = one.apply(one._clock(), [d.Start(job, placement) for job, placement in starts])
        assert [outcome.accepted for outcome in outcomes] == [True] * (len(starts) - 1) + [False]
        assert why in outcomes[-1].message


def test_a_start_that_only_the_hosts_show_yet_counts_once(lsf: PretendedLsf) -> None:
    lsf.jobs.update({"7": Told(), "8": Told()})
    with ready(lsf, start_timeout=60) as one:
        assert one.apply(one._clock(), [d.Start("5", (("h2", 1),))])[0].accepted
        # It began between bjobs and bhosts.
        lsf.extra_used = {"h2": 1}
        events(one)
        assert one.apply(one._clock(), [d.Start("7", (("h2", 1),))])[0].accepted
        assert "has 0 slots free, not 1" in refused(one, d.Start("8", (("h2", 1),)))


def test_slots_that_only_lsf_counts_are_not_free_beside_a_start(lsf: PretendedLsf) -> None:
    lsf.jobs["7"] = Told()
    lsf.extra_used = {"h2": 1}
    with ready(lsf, start_timeout=60) as one:
        assert one.apply(one._clock(), [d.Start("5", (("h2", 1),))])[0].accepted
        events(one)
        assert "has 0 slots free, not 1" in refused(one, d.Start("7", (("h2", 1),)))


def test_slots_that_only_lsf_counts_are_not_free(lsf: PretendedLsf) -> None:
    lsf.extra_used = {"h2": 2}
    with ready(lsf) as one:
        assert "has 0 slots free, not 1" in refused(one, d.Start("5", (("h2", 1),)))


def agents(directory: Path) -> dict[str, str]:
    """Options of agents that never answer."""
    key = directory / "key"
    key.write_text("0" * 64)
    key.chmod(0o600)
    return {"key": str(key), "address": f"unix:{directory}/nobody"}


def behind(job_id: str, host: str) -> d.Start:
    return d.Start(job_id, ((host, 1),), tier="background")


def test_each_tier_has_room_of_its_own(lsf: PretendedLsf, tmp_path: Path) -> None:
    lsf.jobs.update({key: Told() for key in ("7", "8", "9", "10")})
    with ready(lsf, start_timeout=60, agents=agents(tmp_path)) as one:
        assert d.SwapTiers in one.capabilities
        front = [d.Start(key, (("h2", 1),)) for key in ("5", "7")]
        assert all(outcome.accepted for outcome in one.apply(one._clock(), front))
        assert one.apply(one._clock(), [behind("8", "h2"), behind("9", "h2")])[1].accepted
        assert "has 0 slots free in the background" in refused(one, behind("10", "h2"))
        assert "has 0 slots free, not 1" in refused(one, d.Start("10", (("h2", 1),)))
        # Behind the job that runs there.
        assert one.apply(one._clock(), [behind("10", "h1")])[0].accepted
    assert lsf.commands("brun")[-1] == "brun -m h1 10"


def test_nobody_shares_a_host_that_somebody_has_whole(lsf: PretendedLsf, tmp_path: Path) -> None:
    lsf.jobs["5"].asked = ", Exclusive Execution"
    lsf.jobs["7"] = Told()
    with ready(lsf, start_timeout=60, agents=agents(tmp_path)) as one:
        assert "would be shared" in refused(one, behind("5", "h2"))
        assert one.apply(one._clock(), [d.Start("5", (("h2", 1),))])[0].accepted
        assert "belongs to a job that has all of it" in refused(one, behind("7", "h2"))


def test_without_agents_there_is_no_background(lsf: PretendedLsf) -> None:
    with ready(lsf) as one:
        assert "the background needs cluster.options.agents" in refused(one, behind("5", "h2"))


def test_what_handlers_carry_out_stays_a_capability(lsf: PretendedLsf) -> None:
    with adapter(lsf) as one:
        one.use_handlers([], frozenset({d.Migrate}))
        one.describe()
        assert d.Migrate in one.capabilities


def test_an_exclusive_job_needs_the_whole_host(lsf: PretendedLsf) -> None:
    lsf.jobs["5"].asked = ", Exclusive Execution"
    lsf.jobs["7"] = Told()
    with ready(lsf) as one:
        assert "would be shared" in refused(one, d.Start("5", (("h1", 1),)))
        both = [d.Start("5", (("h2", 1),)), d.Start("7", (("h2", 1),))]
        assert [outcome.accepted for outcome in one.apply(one._clock(), both)] == [True, False]


def test_a_host_that_takes_no_jobs(lsf: PretendedLsf) -> None:
    lsf.hosts["h2"] = "closed_Adm"
    with ready(lsf) as one:
        assert "is not usable (closed by the administrator)" in refused(one, d.Start("5", (("h2", 1),)))


@pytest.mark.parametrize(
    ("stat", "said"), [("EXIT", "it is EXIT"), ("RUN", "it is RUN"), ("gone", "it is gone")]
)
def test_a_job_that_changed_since_the_look_is_not_started(
    lsf: PretendedLsf, running: LsfAdapter, stat: str, said: str
) -> None:
    # brun would start even a job again that its user has just killed.
    def answer(argv: tuple[str, ...]) -> Result | None:
        if argv[:3] == ("bjobs", "-a", "-w") and "5" in argv:
            if stat == "gone":
                lsf.jobs.pop("5", None)
            else:
                lsf.jobs["5"].stat = stat
        return None

    lsf.answer = answer
    assert said in refused(running, d.Start("5", (("h2", 1),)))
    assert lsf.commands("brun") == []


CANCELLED = (
    "\nJob <5>, User <alice>, Command <c>\nSat Nov 21 06:38:50: Submitted from host <h1>;\n"
    "Sat Nov 21 06:39:06: Signal <KILL> requested by user or administrator <alice>;\n"
    "Sat Nov 21 06:39:06: Exited. The CPU time used is unknown;\n"
    "Sat Nov 21 06:39:07: Pending: Job has been requeued;\n"
    "Sat Nov 21 06:39:07: Job is forced to run by user or administrator <root>;\n"
)


def test_a_job_that_is_cancelled_between_the_question_and_its_brun_is_ended_again(
    lsf: PretendedLsf, running: LsfAdapter
) -> None:
    lsf.history = CANCELLED
    assert "cancelled just before its start" in refused(running, d.Start("5", (("h2", 1),)))
    assert lsf.commands("brun", "bkill") == ["brun -m h2 5", "bkill 5"]


@pytest.mark.parametrize(
    ("command", "said"),
    [("bkill", "cannot be ended again"), ("bhist", "whether cancelled jobs were started")],
)
def test_a_cancelled_job_that_may_run_on_is_told(
    lsf: PretendedLsf, running: LsfAdapter, command: str, said: str
) -> None:
    lsf.history = CANCELLED
    lsf.answer = lambda argv: done(argv, rc=255, stderr="LSF is down.") if argv[0] == command else None
    with capture_logs() as log:
        assert running.apply(running._clock(), [d.Start("5", (("h2", 1),))])[0].accepted
    assert [said in line["event"] for line in log if line["log_level"] != "debug"] == [True]


def test_a_start_that_lsf_refuses(lsf: PretendedLsf, running: LsfAdapter) -> None:
    lsf.answer = lambda argv: result("brun_unknown", argv=argv) if argv[0] == "brun" else None
    assert refused(running, d.Start("5", (("h2", 1),))) == "Failed to run the job: No matching job found"


def test_a_start_that_had_begun_already_is_one(lsf: PretendedLsf, running: LsfAdapter) -> None:
    said = "Failed to run the job: Job has already started"
    lsf.answer = lambda argv: done(argv, rc=255, stderr=said) if argv[0] == "brun" else None
    assert running.apply(running._clock(), [d.Start("5", (("h2", 1),))])[0].accepted


def test_a_start_without_an_answer_is_decided_by_the_next_look(
    lsf: PretendedLsf, running: LsfAdapter
) -> None:
    lsf.answer = lambda argv: hangs(argv) if argv[0] == "brun" else None
    (outcome,) = running.apply(running._clock(), [d.Start("5", (("h2", 1),))])
    assert (outcome.accepted, outcome.message) == (True, "no answer; the next look will show the result")
    lsf.jobs["5"] = Told("RUN", "h2", started="Sat Nov 21 06:39:11")
    assert [e.job_id for e in events(running) if isinstance(e, ev.JobStarted)] == ["5"]


def test_no_start_is_tried_while_lsf_is_silent(lsf: PretendedLsf, running: LsfAdapter) -> None:
    lsf.answer = lambda argv: hangs(argv) if "5" in argv else None
    assert "not tried" in refused(running, d.Start("5", (("h2", 1),)))
    assert lsf.commands("brun") == []


def test_a_start_that_does_not_happen_is_taken_back(lsf: PretendedLsf, running: LsfAdapter) -> None:
    with capture_logs() as logs:
        assert running.apply(running._clock(), [d.Start("5", (("h2", 1),))])[0].accepted
        failures = [e for e in events(running, 0.8) if isinstance(e, ev.DecisionFailed)]
    assert [e.message for e in failures] == ["it did not start within 0.3 s"]
    assert lsf.commands("brun", "bstop", "bresume") == ["brun -m h2 5", "bstop 5", "bresume 5"]
    assert [log["event"] for log in logs].count("a start did not happen") == 1


def test_a_start_that_cannot_be_taken_back_is_tried_again(lsf: PretendedLsf, running: LsfAdapter) -> None:
    lsf.answer = lambda argv: done(argv, rc=255, stderr="Request aborted") if argv[0] == "bstop" else None
    with capture_logs() as logs:
        running.apply(running._clock(), [d.Start("5", (("h2", 1),))])
        assert not [e for e in events(running, 0.6) if isinstance(e, ev.DecisionFailed)]
        lsf.answer = lambda argv: None
        assert [e for e in events(running, 0.3) if isinstance(e, ev.DecisionFailed)]
    assert "a start that does not happen could not be held again" in [log["event"] for log in logs]


def test_a_job_that_is_held_before_it_starts_is_given_up(lsf: PretendedLsf, running: LsfAdapter) -> None:
    running.apply(running._clock(), [d.Start("5", (("h2", 1),))])
    lsf.jobs["5"].stat = "PSUSP"
    told = events(running, 0.2)
    assert [e.message for e in told if isinstance(e, ev.DecisionFailed)] == [
        "it was held before it started (held (PSUSP); bresume releases it)"
    ]
    assert lsf.commands("bstop", "bresume") == []


def test_the_same_start_twice_is_one(lsf: PretendedLsf, running: LsfAdapter) -> None:
    start = d.Start("5", (("h2", 1),))
    assert all(outcome.accepted for outcome in running.apply(running._clock(), [start, start]))
    assert running.apply(running._clock(), [start])[0].accepted
    assert lsf.commands("brun") == ["brun -m h2 5"]


def test_a_job_that_fits_nowhere_the_way_brun_starts_it_is_refused(lsf: PretendedLsf) -> None:
    lsf.jobs = {"5": Told(asked=", 3 Task(s)")}
    with ready(lsf) as one:
        assert one.apply(one._clock(), [d.Start("5", (("h1", 1), ("h2", 2)))])[0].accepted
    assert lsf.commands("brun") == ["brun -m h2 h1 5"]
    lsf.jobs = {"5": Told(asked=", 2 Task(s)")}
    with ready(lsf) as one:
        assert "cannot give 1 on h1, 1 on h2" in refused(one, d.Start("5", (("h1", 1), ("h2", 1))))


# ---------------------------------------------------------------------- pools that change

TWO_QUEUES = "\nQUEUE: normal\nPRIO NICE STATUS\n 30 20 Open:Inact_Adm\nHOSTS:  all\n"
EXTRA = "\nQUEUE: extra\nPRIO NICE STATUS\n 30 20 Open:Active\nHOSTS:  some/\n"


def test_a_queue_on_a_new_host_group_is_a_pool_whose_jobs_are_known(
    lsf: PretendedLsf, running: LsfAdapter
) -> None:
    """As after ``badmin reconfig``; the group may change later, and the queue go."""
    there = {"queues": TWO_QUEUES + EXTRA, "groups": "GROUP_NAME HOSTS\nsome h1\n"}

    def answer(argv: tuple[str, ...]) -> Result | None:
        if argv[0] == "bqueues":
            return done(argv, there["queues"])
        return done(argv, there["groups"]) if argv[0] == "bmgroup" else None

    lsf.answer = answer
    lsf.jobs["7"] = Told("RUN", "h1", queue="extra")
    told = events(running, 0.4)
    assert [e.pool.name for e in told if isinstance(e, ev.PoolChanged)] == ["extra"]
    assert [e.job_id for e in told if isinstance(e, ev.JobStarted)] == ["7"]
    there["groups"] = "GROUP_NAME HOSTS\nsome h1 h2\n"
    nodes = [e.node for e in events(running, 0.4) if isinstance(e, ev.NodeUp)]
    assert [(node.name, "extra" in node.pools) for node in nodes] == [("h2", True)]
    there["queues"] = TWO_QUEUES
    del lsf.jobs["7"]
    events(running, 0.4)
    assert all("extra" not in node.pools for node in running.describe().nodes)


def test_a_queue_of_headways_that_goes_is_said(lsf: PretendedLsf, running: LsfAdapter) -> None:
    lsf.answer = lambda argv: done(argv, EXTRA) if argv[0] == "bqueues" else None
    with capture_logs() as logs:
        events(running, 0.4)
    said = [str(log.get("what")) for log in logs]
    assert any("queue normal is gone: LSF moves the queue's jobs to lost_and_found" in what for what in said)


def test_a_job_may_ask_for_a_host_group_that_no_queue_names(lsf: PretendedLsf) -> None:
    lsf.jobs = {"5": Told(asked=", Specified Hosts <some>")}
    lsf.answer = lambda argv: done(argv, "GROUP_NAME HOSTS\nsome h1\n") if argv[0] == "bmgroup" else None
    with ready(lsf) as one:
        known = one.overlay.known("5")
        assert known is not None and known.job.request.excluded_nodes == ("h2",)


def test_groups_that_lsf_does_not_tell_stay_as_they_were(lsf: PretendedLsf, running: LsfAdapter) -> None:
    there = {"rc": 0}

    def answer(argv: tuple[str, ...]) -> Result | None:
        if argv[0] == "bqueues":
            return done(argv, TWO_QUEUES + EXTRA)
        if argv[0] == "bmgroup":
            return done(argv, "" if there["rc"] else "GROUP_NAME HOSTS\nsome h1\n", there["rc"], "Oops")
        return None

    lsf.answer = answer
    events(running, 0.4)
    there["rc"] = 255
    assert not [e for e in events(running, 0.4) if isinstance(e, (ev.PoolChanged, ev.NodeUp))]


#: A job of one to two slots, which on one of the two hosts gets exactly one.
RANGE = ", 1-2 Task(s)"
ONE_OF_TWO = d.Start("5", (("h2", 1),))


@pytest.fixture
def ranged(lsf: PretendedLsf) -> Iterator[LsfAdapter]:
    lsf.jobs = {"5": Told(asked=RANGE)}
    with ready(lsf) as one:
        yield one


def test_a_job_of_a_range_gets_its_number_before_it_starts(lsf: PretendedLsf, ranged: LsfAdapter) -> None:
    assert ranged.apply(ranged._clock(), [ONE_OF_TWO])[0].accepted
    assert lsf.commands("bmod", "brun") == ["bmod -n 1 5", "brun -m h2 5"]


def test_a_number_that_lsf_does_not_take_is_no_start(lsf: PretendedLsf, ranged: LsfAdapter) -> None:
    lsf.answer = lambda argv: done(argv, rc=255, stderr="Permission denied") if argv[0] == "bmod" else None
    assert "Permission denied" in refused(ranged, ONE_OF_TWO)
    assert lsf.commands("brun") == []


@pytest.mark.parametrize("command", ["brun", "bjobs"], ids=["refused", "no longer pending"])
def test_a_start_that_is_refused_leaves_the_range(
    lsf: PretendedLsf, ranged: LsfAdapter, command: str
) -> None:
    def answer(argv: tuple[str, ...]) -> Result | None:
        if argv[0] == "bmod":
            lsf.jobs["5"].stat = "PSUSP" if command == "bjobs" else "PEND"
        return done(argv, rc=255, stderr="no") if argv[0] == "brun" else None

    lsf.answer = answer
    refused(ranged, ONE_OF_TWO)
    assert lsf.commands("bmod")[:2] == ["bmod -n 1 5", "bmod -n 1,2 5"]


def test_a_start_that_is_taken_back_leaves_the_range(lsf: PretendedLsf, ranged: LsfAdapter) -> None:
    ranged.apply(ranged._clock(), [ONE_OF_TWO])
    assert [e for e in events(ranged, 0.8) if isinstance(e, ev.DecisionFailed)]
    assert lsf.commands("bmod", "bresume")[-2:] == ["bresume 5", "bmod -n 1,2 5"]


# ---------------------------------------------------------------------- other decisions


@pytest.mark.parametrize(
    ("decision", "command"),
    [
        (d.Hold("5"), "bstop 5"), (d.Release("5"), "bresume 5"), (d.Suspend("6"), "bstop 6"),
        (d.Resume("6"), "bresume 6"), (d.Kill("6"), "bkill 6"), (d.Cancel("5"), "bkill 5"),
        (d.Requeue("6"), "brequeue 6"), (d.Resize("5", 2), "bmod -n 2 5"),
    ],
)  # fmt: skip
def test_decisions_run_their_command(
    lsf: PretendedLsf, running: LsfAdapter, decision: d.Decision, command: str
) -> None:
    assert running.apply(running._clock(), [decision])[0].accepted
    assert command in lsf.commands(command.split()[0])


def test_what_is_so_already_is_done(lsf: PretendedLsf, running: LsfAdapter) -> None:
    lsf.answer = lambda argv: (
        done(argv, rc=255, stderr="Job <6>: Job has already finished") if argv[0] == "bkill" else None
    )
    assert running.apply(running._clock(), [d.Kill("6")])[0].accepted
    lsf.answer = lambda argv: (
        done(argv, rc=255, stderr="Job <6>: User permission denied") if argv[0] == "bkill" else None
    )
    assert refused(running, d.Kill("6")) == "Job <6>: User permission denied"


# ---------------------------------------------------------------------- outages


def broken(what: str) -> Callable[[tuple[str, ...]], Result | None]:
    def answer(argv: tuple[str, ...]) -> Result | None:
        listing = argv[0] == "bjobs" and "-u" in argv
        if what == "hangs" and argv[0] == "bjobs":
            return hangs(argv)
        if what == "refused" and listing:
            return done(argv, rc=255, stderr="LSF is down. Please wait ...")
        if what == "nonsense" and listing:
            return done(argv, "<html>Bad gateway</html>")
        if what == "cut off" and listing and "-w" in argv:
            head = "JOBID  USER  STAT  QUEUE  FROM_HOST  EXEC_HOST  JOB_NAME  SUBMIT_TIME"
            return done(argv, f"{head}\n5 alice PEND normal h1 - x")
        if what == "too long" and listing:
            return Result(argv=argv, rc=-9, stdout=b"JOBID", stderr="", seconds=1.0, too_long=True)
        if what == "hosts" and argv[0] == "bhosts":
            return done(argv, "")
        if what == "queues" and argv[0] == "bqueues":
            return done(argv, rc=255, stderr="batch daemon not responding")
        if what == "empty" and argv[0] == "bjobs":
            return done(argv, rc=255, stderr="No job found") if listing else hangs(argv)
        return None

    return answer


@pytest.mark.parametrize(
    "what", ["hangs", "refused", "nonsense", "cut off", "too long", "hosts", "queues", "empty"]
)
def test_an_outage_ends_no_job_and_is_logged_once(lsf: PretendedLsf, what: str) -> None:
    with capture_logs() as logs, ready(lsf) as one:
        lsf.answer = broken(what)
        news: list[ev.Event] = []
        until(lambda: news.extend(events(one, 0.1)) or one.outages(), "the outage is seen", pause=0.0)
        news += events(one, 0.2)
        lsf.answer = lambda argv: None
        until(lambda: news.extend(events(one, 0.1)) or not one.outages(), "its end is seen", pause=0.0)
        news += events(one, 0.5)
    assert [type(event) for event in news] == [ev.ClusterSilent, ev.ClusterAnswers]
    told = [log["event"] for log in logs if "answer" in log["event"]]
    assert told == ["lsf does not answer; waiting for it", "lsf answers again"]


def test_a_hanging_look_delays_neither_the_deadline_nor_a_wake(lsf: PretendedLsf) -> None:
    with ready(lsf) as one:
        blocked = threading.Event()

        def answer(argv: tuple[str, ...]) -> Result | None:
            if argv[0] == "bjobs":
                blocked.wait(HANG)
            return None

        lsf.answer = answer
        time.sleep(0.06)
        began = time.monotonic()
        assert one.wait(one._clock() + 0.2) is not None
        assert time.monotonic() - began < bound(2.0)
        threading.Timer(0.1, one.wake).start()
        began = time.monotonic()
        assert one.wait(None) is not None
        assert time.monotonic() - began < bound(1.0)
        blocked.set()


IMITATION = "a Nov 21 06:38\n7777    root    RUN   normal     h1          h2 fake"


def test_a_name_that_imitates_a_job_invents_none(lsf: PretendedLsf) -> None:
    lsf.jobs["7"] = Told(name=IMITATION)
    with capture_logs() as logs, adapter(lsf) as one:
        one.describe()
        assert {e.job.id for e in events(one, 0.2) if isinstance(e, ev.JobSubmitted)} == {"5", "6", "7"}
    assert any("imitates job 7777" in log.get("what", "") for log in logs)


def test_an_lsf_that_cannot_list_numbers_alone_is_asked_once(lsf: PretendedLsf) -> None:
    def answer(argv: tuple[str, ...]) -> Result | None:
        return done(argv, rc=255, stderr="bjobs: invalid option -- 'o'") if "jobid user" in argv else None

    lsf.answer = answer
    with ready(lsf) as one:
        assert one.overlay.known("5") is not None
        events(one)
    assert sum("jobid user" in argv for argv in lsf.said) == 1


def test_what_users_write_is_told_once_and_not_at_any_length(lsf: PretendedLsf) -> None:
    long = f", Requested Resources <rusage[{'x' * 5000}=1]>"
    lsf.jobs = {"5": Told(asked=long), "6": Told(asked=long)}
    with capture_logs() as logs, adapter(lsf) as one:
        one.describe()
        events(one, 0.2)
    (odd,) = [
        log["what"] for log in logs if log["event"] == "odd in lsf's output" and "rusage" in log["what"]
    ]
    assert len(odd) == 300 and odd.endswith("...")


def test_one_strange_json_does_not_blind_us(lsf: PretendedLsf) -> None:
    lsf.ibm = True
    good = {"COMMAND": "bjobs", "JOBS": 0, "RECORDS": []}
    state = {"json": json.dumps(good)}

    def answer(argv: tuple[str, ...]) -> Result | None:
        if argv[0] == "bjobs" and "-json" in argv and "jobid user" not in argv:
            return done(argv, state["json"])
        if argv[0] == "brsvs":
            return done(argv, rc=255, stderr="No reservation found")
        return None

    lsf.answer = answer
    with capture_logs() as logs, adapter(lsf) as one:
        one.describe()
        assert not [e for e in events(one, 0.1) if isinstance(e, ev.JobSubmitted)]
        state["json"] = '{"RECORDS": [{"JOB_NAME": "an "unescaped" name"}]}'
        assert {e.job.id for e in events(one, 0.2) if isinstance(e, ev.JobSubmitted)} == {"5", "6"}
    odd = [log["what"] for log in logs if log["event"] == "odd in lsf's output"]
    assert len(odd) == 2 and odd[1].startswith("jobs are read from text")
    assert odd[0].startswith("each user's jobs are asked for separately")


@pytest.mark.parametrize("ibm", [False, True])
def test_an_empty_json_of_an_lsf_that_does_not_know_the_fields_proves_nothing(ibm: bool) -> None:
    lsf = PretendedLsf(ibm=ibm)
    empty = json.dumps({"COMMAND": "bjobs", "JOBS": 0, "RECORDS": []})

    def answer(argv: tuple[str, ...]) -> Result | None:
        if argv[0] == "bjobs" and "-json" in argv and not lsf.jobs:
            return done(argv, empty, rc=255)
        return done(argv, rc=255, stderr="No reservation found") if argv[0] == "brsvs" else None

    lsf.answer = answer
    with capture_logs() as logs, ready(lsf) as one:
        lsf.jobs["5"] = Told()
        assert [e.job.id for e in events(one) if isinstance(e, ev.JobSubmitted)] == ["5"]
    assert "lsf does not answer; waiting for it" not in [log["event"] for log in logs]


# ---------------------------------------------------------------------- ends


def test_an_ended_job_in_the_listing(lsf: PretendedLsf, running: LsfAdapter) -> None:
    lsf.jobs["6"] = Told("EXIT", "h1", end="Sat Nov 21 06:39:08: Exited with exit code 3. x")
    (ended,) = (e for e in events(running) if isinstance(e, ev.JobEnded))
    assert (ended.job_id, ended.outcome, ended.exit_code, ended.time) == ("6", "failed", 3, at(6, 39, 8))


def test_a_job_that_lsf_forgot_is_looked_up_in_its_history(lsf: PretendedLsf, running: LsfAdapter) -> None:
    lsf.history = (
        "\nJob <6>, User <alice>, Command <c>\nSat Nov 21 06:38:50: Submitted from host <h1>;\n"
        "Sat Nov 21 06:39:00: Dispatched to <h1>;\nSat Nov 21 06:39:08: Done successfully.\n"
    )
    del lsf.jobs["6"]
    (ended,) = (e for e in events(running) if isinstance(e, ev.JobEnded))
    assert (ended.outcome, ended.time) == ("completed", at(6, 39, 8))
    assert "bhist -a -l -u all 6" in lsf.commands("bhist")


def test_a_job_that_nobody_knows_has_vanished(lsf: PretendedLsf, running: LsfAdapter) -> None:
    del lsf.jobs["6"]
    (ended,) = (e for e in events(running) if isinstance(e, ev.JobEnded))
    assert (ended.job_id, ended.outcome) == ("6", "vanished")


def test_a_listing_that_left_a_job_out_is_asked_again(lsf: PretendedLsf, running: LsfAdapter) -> None:
    def answer(argv: tuple[str, ...]) -> Result | None:
        if argv[0] == "bjobs" and "-u" in argv and "-w" in argv:
            short = PretendedLsf({"5": lsf.jobs["5"]})
            return short._bjobs(argv)
        return None

    lsf.answer = answer
    assert events(running) == []
    assert "bjobs -a -w 6" in lsf.commands("bjobs")


def test_a_requeued_job_is_pending_again(lsf: PretendedLsf, running: LsfAdapter) -> None:
    lsf.jobs["6"] = Told("PEND")
    told = events(running)
    assert [e.job_id for e in told if isinstance(e, ev.JobRequeued)] == ["6"]


HISTORY = (
    "\nJob <{job}>, Job Name <x>, User <alice>, Project <p>, Command <c>\n"
    "Sat Nov 21 06:38:50: Submitted from host <h1>, to Queue <normal>, CWD </tmp>;\n"
    "Sat Nov 21 06:39:00: Dispatched to <h1>;\n{more}"
)
ASKED_BACK = "Sat Nov 21 06:39:10: Signal <REQUEUE_PEND> requested by user or administrator <alice>;\n"
EXITED = "Sat Nov 21 06:39:11: Exited with exit code {code}. The CPU time used is 0.0 seconds;\n"


def exits(lsf: PretendedLsf, job: str, code: int = 130, *, requeued: bool) -> None:
    """The job is EXIT, and its history says why."""
    end = EXITED.format(code=code)
    lsf.jobs[job] = Told("EXIT", "h1", end=end.rstrip().rstrip(";"))
    lsf.history = HISTORY.format(job=job, more=(ASKED_BACK if requeued else "") + end)


def kinds(one: LsfAdapter) -> list[type[ev.Event]]:
    """What is told now of jobs' lives."""
    return [type(e) for e in events(one) if not isinstance(e, ev.JobChanged)]


@pytest.mark.parametrize("code", [130, 143, 7])
def test_an_exit_on_the_way_back_to_the_queue_is_no_end(
    lsf: PretendedLsf, running: LsfAdapter, code: int
) -> None:
    lsf.jobs["7"] = Told(asked=", Dependency Condition <ended(6)>")
    events(running)
    exits(lsf, "6", code, requeued=True)
    # Nobody who waits for its end may start, and its slot is not given away.
    assert events(running) == []
    assert "its dependency 'ended(6)' is not met" in refused(running, d.Start("7", (("h2", 1),)))
    lsf.jobs["6"] = Told("PEND")
    assert kinds(running) == [ev.JobRequeued]
    assert "its dependency 'ended(6)' is not met" in refused(running, d.Start("7", (("h2", 1),)))


def test_an_exit_without_a_requeue_is_told_after_one_question(lsf: PretendedLsf, running: LsfAdapter) -> None:
    exits(lsf, "6", requeued=False)
    told = events(running)
    assert [e.outcome for e in told if isinstance(e, ev.JobEnded)] == ["cancelled"]
    events(running)
    assert len(lsf.commands("bhist")) == 1


def test_a_requeue_of_ones_own_has_time_although_its_history_lags_behind(
    lsf: PretendedLsf, running: LsfAdapter
) -> None:
    assert running.apply(running._clock(), [d.Requeue("6")])[0].accepted
    exits(lsf, "6", requeued=False)
    assert events(running) == []
    lsf.jobs["6"] = Told("PEND")
    assert kinds(running) == [ev.JobRequeued]
    # What it does after that is its own affair.
    lsf.jobs["6"] = Told("RUN", "h1")
    assert kinds(running) == [ev.JobStarted]
    exits(lsf, "6", requeued=False)
    assert kinds(running) == [ev.JobEnded]


def test_a_job_that_was_started_and_requeued_between_two_looks_did_run(
    lsf: PretendedLsf, running: LsfAdapter
) -> None:
    exits(lsf, "5", requeued=True)
    assert kinds(running) == [ev.JobStarted]
    lsf.jobs["5"] = Told("PEND")
    assert kinds(running) == [ev.JobRequeued]


def test_where_bhist_is_not_there_an_exit_is_what_it_looks_like(
    lsf: PretendedLsf, running: LsfAdapter
) -> None:
    def answer(argv: tuple[str, ...]) -> Result | None:
        if argv[0] == "bhist":
            raise Failure("the program 'bhist' is not installed")
        return None

    lsf.answer = answer
    exits(lsf, "6", requeued=True)
    with capture_logs() as logs:
        assert kinds(running) == [ev.JobEnded]
    assert any("bhist" in entry.get("what", "") for entry in logs)


def test_a_history_that_nobody_can_ask_for_now_is_an_outage(lsf: PretendedLsf, running: LsfAdapter) -> None:
    lsf.answer = lambda argv: hangs(argv) if argv[0] == "bhist" else None
    exits(lsf, "6", requeued=True)
    assert kinds(running) == [ev.ClusterSilent] and running.outages()


def test_what_one_job_says_in_bhist_is_not_believed_of_another(
    lsf: PretendedLsf, running: LsfAdapter
) -> None:
    """Two jobs exit at once; the first's command holds a record of the second, which bhist does not know."""
    lsf.jobs["4"] = Told("RUN", "h2")
    events(running)
    exits(lsf, "6", requeued=False)
    lsf.jobs["4"] = Told("EXIT", "h2", end=EXITED.format(code=130).rstrip().rstrip(";"))
    imitated = HISTORY.format(job="6", more=ASKED_BACK + EXITED.format(code=130))
    histories = {"4": HISTORY.format(job="4", more=EXITED.format(code=130)) + SEPARATOR + imitated}
    histories["6"] = HISTORY.format(job="6", more=EXITED.format(code=130))

    def answer(argv: tuple[str, ...]) -> Result | None:
        if argv[0] != "bhist":
            return None
        return done(argv, SEPARATOR.join(histories[word] for word in argv if word in histories))

    lsf.answer = answer
    told = events(running)
    assert {e.job_id for e in told if isinstance(e, ev.JobEnded)} == {"4", "6"}


def test_a_suspended_job_keeps_its_place(lsf: PretendedLsf, running: LsfAdapter) -> None:
    lsf.jobs["6"].stat = "USUSP"
    assert [e.job_id for e in events(running) if isinstance(e, ev.JobSuspended)] == ["6"]
    lsf.jobs["6"].stat = "RUN"
    assert [e.job_id for e in events(running) if isinstance(e, ev.JobResumed)] == ["6"]


def test_hosts_that_fail_and_come_back(lsf: PretendedLsf, running: LsfAdapter) -> None:
    lsf.hosts["h2"] = "unavail"
    assert [e.node for e in events(running) if isinstance(e, ev.NodeDown)] == ["h2"]
    lsf.hosts["h2"] = "ok"
    assert [e.node.name for e in events(running) if isinstance(e, ev.NodeUp)] == ["h2"]


# ---------------------------------------------------------------------- monitor mode


def test_in_monitor_mode_no_command_that_changes_anything_is_ever_run(lsf: PretendedLsf) -> None:
    with ready(lsf, read_only=True) as one:
        lsf.queue_status = "Open:Active"
        events(one, 0.2)
        (outcome,) = one.apply(one._clock(), [d.Kill("6")])
        assert not outcome.accepted
        one.check()
    assert all(only_reads(argv) for argv in lsf.said)
    with pytest.raises(Failure, match="monitor mode: brun"):
        LsfClient(LsfOptions(queues=("normal",)), read_only=True, transport=lsf).run(
            ("brun", "-m", "h1", "5")
        )


@pytest.mark.parametrize(
    ("line", "reads"),
    [
        ("bjobs -u all", True), ("bhist -l 5", True), ("badmin showconf mbd", True), ("brun -V", True),
        ("brun -m h1 5", False), ("badmin qact normal", False), ("bmod -W 5 5", False), ("badmin", False),
        ("brsvadd -n 1", False), ("bkill 0", False),
    ],
)  # fmt: skip
def test_which_commands_only_read(line: str, reads: bool) -> None:
    assert only_reads(line.split()) is reads


def test_driving_an_active_queue_is_noted(lsf: PretendedLsf) -> None:
    lsf.queue_status = "Open:Active"
    with capture_logs() as logs, ready(lsf) as one:
        events(one, 0.2)
    odd = [log["what"] for log in logs if log["event"] == "odd in lsf's output"]
    assert odd == ["queue normal is active: LSF starts the queue's jobs by itself (badmin qinact normal)"]


# ---------------------------------------------------------------------- hosts that sleep


def powers(told: list[ev.Event]) -> list[tuple[str, str]]:
    return [(e.node, e.power) for e in told if isinstance(e, ev.NodePowerChanged)]


def test_a_host_that_does_not_wake_is_reported_and_counts_as_down(lsf: PretendedLsf) -> None:
    lsf.ibm = True
    lsf.hosts["h2"] = "closed_Power"
    with ready(lsf, power=True, wake_timeout=0.3) as one:
        with capture_logs() as logs:
            assert one.apply(one._clock(), [d.PowerUp(("h2",))])[0].accepted
            told = events_until(one, ev.NodeDown)
        assert powers(told)[0] == ("h2", "waking")
        (down,) = (e for e in told if isinstance(e, ev.NodeDown))
        assert (down.node, down.reason) == ("h2", "headway: did not wake within 0.3 s")
        assert [entry["node"] for entry in logs if "does not wake" in entry["event"]] == ["h2"]
        assert "is not usable (headway: did not wake" in refused(one, d.Start("5", (("h2", 1),)))
        # Nothing more is said of it, until LSF can use it.
        assert events(one) == []
        lsf.hosts["h2"] = "ok"
        (up,) = (e for e in events(one) if isinstance(e, ev.NodeUp))
        assert up.node.available
        assert one.apply(one._clock(), [d.Start("5", (("h2", 1),))])[0].accepted


@pytest.mark.parametrize("status", ["closed_Power", "unavail", "unreach"])
def test_a_host_that_boots_is_waking_and_not_down(lsf: PretendedLsf, status: str) -> None:
    lsf.ibm = True
    lsf.hosts["h2"] = "closed_Power"
    with ready(lsf, power=True, wake_timeout=60) as one:
        assert one.apply(one._clock(), [d.PowerUp(("h2",))])[0].accepted
        lsf.hosts["h2"] = status
        told = events(one)
        assert powers(told) == [("h2", "waking")] and not any(isinstance(e, ev.NodeDown) for e in told)
        assert "host h2 is waking" in refused(one, d.Start("5", (("h2", 1),)))
        lsf.hosts["h2"] = "ok"
        assert powers(events(one)) == [("h2", "on")]


def test_a_host_that_is_sent_back_to_sleep_is_not_waited_for(lsf: PretendedLsf) -> None:
    lsf.ibm = True
    lsf.hosts["h2"] = "closed_Power"
    with ready(lsf, power=True, wake_timeout=0.3) as one:
        assert one.apply(one._clock(), [d.PowerUp(("h2",)), d.PowerDown(("h2",))])[1].accepted
        told = events(one, 0.6)
        assert not any(isinstance(e, ev.NodeDown) for e in told)
        assert (powers(told) or [("h2", "asleep")])[-1] == ("h2", "asleep")
