"""What PBS counts for the whole server: how much there is, who asks for it, when it changes."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from pbs_recorded import BETWEEN, NODES, NOW, QUEUES, SITE, job, listing, recorded
from pretended import events, result
from pretended_pbs import RUNS, PretendedPbs, adapter
from structlog.testing import capture_logs
from waiting import HANG, until

from headway import events as ev
from headway_adapters.pbs import PbsAdapter, cluster, dsv, licences, reader
from headway_adapters.transport import Result

#: As OpenPBS 23.06 writes it.
RESOURCES = """#
# Create resources and set their properties.
#
Resource matlab
    type = long
    flag = q

Resource plain
    type = long

Resource scratch
    type = size
    flag = q

Resource tok
    type = float
    flag = hn
"""
FLAGS = {"matlab": "q", "plain": "", "scratch": "q", "tok": "hn"}
FAR = {"queue": "other", **RUNS, "exec_vnode": "(elsewhere:ncpus=1)"}


class WithLicences(PretendedPbs):
    """``there`` is what the server has; ``resources`` is what qmgr says of them, or how it fails."""

    def __init__(self, *jobs: dict[str, Any], there: dict[str, Any]) -> None:
        super().__init__()
        self.jobs = {f"{at}.pbshost": one for at, one in enumerate(jobs, start=1)}
        self.there = there
        self.resources: Result | str = RESOURCES

    def listed(self, argv: tuple[str, ...]) -> Result:
        if argv == licences.LIST:
            return result(argv, self.resources) if isinstance(self.resources, str) else self.resources
        if "-B" in argv:
            shown = json.loads(recorded("qstat_server_json")["stdout"])
            next(iter(shown["Server"].values()))["resources_available"] = self.there
            return result(argv, json.dumps(shown))
        return super().listed(argv)


def watching(pbs: PretendedPbs) -> PbsAdapter:
    return adapter(pbs, read_only=True)


def next_of(one: PbsAdapter, kind: type[Any]) -> list[Any]:
    end = time.monotonic() + HANG
    while time.monotonic() < end:
        if told := [event for event in events(one) if isinstance(event, kind)]:
            return told
    raise AssertionError(f"no {kind.__name__} is told")


def test_the_flags_of_the_sites_own_resources() -> None:
    assert licences.flags(RESOURCES) == FLAGS
    assert licences.flags("nonsense\n    flag = q\n") == {}


@pytest.mark.parametrize(
    ("there", "known", "found"),
    [
        ({"matlab": 3, "scratch": "10gb", "tok": 1.5}, FLAGS, {"matlab": 3, "scratch": 10 << 30, "tok": 1}),
        ({"matlab": "3", "plain": 5, "ncpus": 64}, FLAGS, {"matlab": 3}),
        ({"matlab": -1, "scratch": "much", "tok": float("nan")}, FLAGS, {}),
        ({"matlab": 0}, FLAGS, {"matlab": 0}),
        ({"matlab": 3, "ncpus": 64, "words": "a,b"}, None, {"matlab": 3, "ncpus": 64}),
    ],
)
def test_what_there_is(there: dict[str, Any], known: dict[str, str] | None, found: dict[str, int]) -> None:
    assert licences.totals(there, known, set()) == found


def test_of_what_pbs_does_not_count_it_is_said_how_it_would() -> None:
    notes: set[str] = set()
    assert licences.totals({"plain": 3}, FLAGS, notes) == {}
    assert [note for note in notes if "set resource plain flag=q" in note]


@pytest.mark.parametrize(
    ("listed", "wanted", "unfit"),
    [
        ({"ncpus": 4}, (), ""),
        ({"scratch": "1kb", "matlab": 2, "other": 9}, (("matlab", 2), ("scratch", 1024)), ""),
        ({"tok": 0.7, "matlab": "0"}, (("tok", 1),), ""),
        ({"matlab": -5}, (), "it asks for matlab=-5, which is no amount that can be counted"),
        ({"matlab": "1e999"}, (), "it asks for matlab=1e999, which is no amount that can be counted"),
    ],
)
def test_what_is_asked_for(listed: dict[str, Any], wanted: tuple[Any, ...], unfit: str) -> None:
    assert licences.asked(listed, FLAGS) == (wanted, unfit)


def test_a_job_takes_its_licences_and_nobody_gets_less_than_nothing() -> None:
    wants, odd = job(resources={"matlab": 2, "scratch": "1gb"}), job(resources={"matlab": -5})
    with watching(WithLicences(wants, odd, there={"matlab": 3, "scratch": "10gb"})) as one:
        assert dict(one.describe().licences) == {"matlab": 3, "scratch": 10 << 30}
        came = {event.job.id: event.job for event in events(one) if isinstance(event, ev.JobSubmitted)}
    assert came["1.pbshost"].request.licences == (("matlab", 2), ("scratch", 1 << 30))
    assert not came["1.pbshost"].held
    assert came["2.pbshost"].held and came["2.pbshost"].request.licences == ()


def test_what_others_have_is_not_there_for_us_and_comes_back() -> None:
    ours = job(**RUNS, exec_vnode="(pbshost[0]:ncpus=1)", resources={"matlab": 1})
    pbs = WithLicences(ours, job(**FAR, resources={"matlab": 2}), there={"matlab": 5})
    with watching(pbs) as one:
        assert dict(one.describe().licences) == {"matlab": 3}
        events(one)
        del pbs.jobs["2.pbshost"]
        (told,) = next_of(one, ev.LicencesChanged)
        assert (told.licence, told.total) == ("matlab", 5)
        pbs.there = {"matlab": 1}
        (told,) = next_of(one, ev.LicencesChanged)
        assert (told.licence, told.total) == ("matlab", 1)


def test_more_in_use_than_there_are_is_said_once() -> None:
    ours = job(**RUNS, exec_vnode="(pbshost[0]:ncpus=1)", resources={"matlab": 4})
    with capture_logs() as logs, watching(WithLicences(ours, there={"matlab": 3})) as one:
        one.describe()
        events(one)
    assert sum("'matlab': 4 are in use and there are only 3" in str(log.get("what")) for log in logs) == 1


def test_where_the_flags_are_not_told_everything_is_counted() -> None:
    pbs = WithLicences(job(resources={"matlab": 1}), there={"matlab": 3})
    pbs.resources = result(licences.LIST, rc=1, stderr="qmgr: Syntax error")
    with capture_logs() as logs, watching(pbs) as one:
        assert dict(one.describe().licences) == {"matlab": 3}
    assert any("cannot be asked" in str(log.get("what")) for log in logs)


def test_a_flag_that_is_set_later_counts_from_then_on() -> None:
    pbs = WithLicences(job(resources={"plain": 1}), there={"matlab": 3, "plain": 2})
    with watching(pbs) as one:
        assert dict(one.describe().licences) == {"matlab": 3}
        events(one)
        pbs.resources = RESOURCES.replace("Resource plain\n", "Resource plain\n    flag = q\n")
        (told,) = next_of(one, ev.LicencesChanged)
    assert (told.licence, told.total) == ("plain", 2)


@pytest.mark.parametrize("silent", [False, True])
def test_flags_that_cannot_be_asked_again_stay_as_they_were(silent: bool) -> None:
    pbs = WithLicences(job(), there={"matlab": 3, "plain": 2})
    with capture_logs() as logs, watching(pbs) as one:
        one.describe()
        told: list[ev.Event] = []
        asked = pbs.said.count(licences.LIST)
        pbs.resources = result(licences.LIST, rc=1, stderr="qmgr: Syntax error")
        if silent:
            pbs.resources = Result(licences.LIST, 124, b"", "", 15.0, timed_out=True)
        until(lambda: told.extend(events(one)) or pbs.said.count(licences.LIST) > asked + 1)
        assert not one.outages()
    assert not [event for event in told if isinstance(event, ev.LicencesChanged)]
    assert any("cannot be asked" in str(log.get("what")) for log in logs)


def test_flags_are_asked_for_once_where_all_are_counted() -> None:
    pbs = WithLicences(job(), there={"matlab": 3})
    with watching(pbs) as one:
        one.describe()
        settings = sum("-B" in argv for argv in pbs.said)
        until(lambda: events(one) is None or sum("-B" in argv for argv in pbs.said) > settings + 1)
    assert pbs.said.count(licences.LIST) == 1


def test_nobody_asks_where_the_server_has_nothing() -> None:
    pbs = WithLicences(job(), there={})
    with watching(pbs) as one:
        assert one.describe().licences == ()
        events(one)
    assert licences.LIST not in pbs.said


def test_an_array_elements_licences_are_its_own() -> None:
    array = {**job(resources={"matlab": 1}), "job_state": "B", "array": "True"}
    element = {**job(resources={"matlab": 1})}
    records = dsv.jobs(listing({"3[].pbshost": array, "3[1].pbshost": element}), BETWEEN)
    site = cluster.Site(SITE.managed, licences=frozenset({"matlab"}))
    found = reader.read_jobs(records, NOW, site, QUEUES, NODES, set())
    assert found.jobs["3[1].pbshost"].job.request.licences == (("matlab", 1),)
