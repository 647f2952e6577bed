"""What a journal of mode monitor tells: courses of jobs, stretches, gaps, and what is refused."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from watched_journals import EPOCH as T
from watched_journals import began, came, cluster, info, job, over, told

from headway.errors import UserError
from headway.events import (
    ClusterAnswers,
    ClusterSilent,
    JobChanged,
    JobHeld,
    JobReleased,
    JobRequeued,
    JobResumed,
    JobSuspended,
    NodeDown,
)
from headway.journal import Journal
from headway.model.sites import Sites
from headway.shadow.record import BRIDGED, Record, read_record


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "journal.sqlite"


def read(place: Path, since: float = float("-inf"), until: float = float("inf")) -> Record:
    with Journal.open(place, create=False, read_only=True) as journal:
        return read_record(journal, since, until)


def courses(record: Record, stretch: int = 0) -> dict[str, tuple[float, float | None, float | None]]:
    return {one.job.id: (one.submit, one.start, one.end) for one in record.stretches[stretch].courses}


def test_jobs_have_the_times_that_the_batch_system_states(place: Path) -> None:
    told(place, (T, []), (T + 5, [came("1", T + 3), began("1", T + 4)]), (T + 70, [over("1", T + 64)]),
         ended=T + 100)  # fmt: skip
    record = read(place)
    assert courses(record) == {"1": (T + 3, T + 4, T + 64)}
    (stretch,) = record.stretches
    assert (stretch.begin, stretch.end) == (T, T + 100) and record.gaps == []
    assert stretch.courses[0].runtime == 60


def test_what_was_there_first_is_told_apart(place: Path) -> None:
    first = [came("1", T - 50), began("1", T - 40), came("2", T - 30), came("0", T - 90), began("0", T - 80),
             over("0", T - 60)]  # fmt: skip
    told(place, (T, first), (T + 9, [came("3", T + 8)]), ended=T + 50)
    (stretch,) = read(place).stretches
    assert [(one.job.id, one.begun, one.waited) for one in stretch.courses] == [
        ("1", True, False), ("2", False, True), ("3", False, False),
    ]  # fmt: skip
    assert [(one.job_id, one.elapsed) for one in stretch.running] == [("1", 40.0)]


def test_pauses_holds_requeues_and_changes_are_known(place: Path) -> None:
    told(
        place,
        (T, []),
        (T + 1, [came("1", T + 1, held=True), came("2", T + 1)]),
        (T + 2, [JobReleased(T + 2, "1"), JobHeld(T + 2, "2")]),
        (T + 3, [JobChanged(T + 3, job("1", T + 1, processors=4))]),
        (T + 4, [began("1", T + 4)]),
        (T + 9, [JobChanged(T + 9, job("1", T + 1, processors=4, limit=7200.0))]),
        (T + 10, [JobSuspended(T + 10, "1")]),
        (T + 30, [JobResumed(T + 30, "1")]),
        (T + 40, [JobRequeued(T + 40, "1")]),
        (T + 60, [began("1", T + 60)]),
        (T + 65, [JobSuspended(T + 65, "1")]),
        (T + 90, [over("1", T + 90)]),
        ended=T + 100,
    )
    (stretch,) = read(place).stretches
    two, one = stretch.courses
    assert (one.submit, one.start, one.end, one.paused, one.runtime) == (T + 40, T + 60, T + 90, 25, 5)
    assert one.requeued and one.changed and one.held and one.job.held
    assert (one.job.request.processors, one.job.request.walltime) == (4, 7200)
    assert two.held and not two.job.held and two.start is None
    assert [type(event) for event in stretch.changes] == [JobReleased, JobHeld]


def test_a_short_gap_that_hides_nothing_is_bridged_and_told(place: Path) -> None:
    told(place, (T, []), (T + 1, [came("1", T + 1), came("2", T + 1)]), ended=T + 50)
    # The first look of the next run tells what there is, and what ended lately.
    again = [came("1", T + 1), began("1", T + 60), over("1", T + 90), came("2", T + 1), came("3", T + 70)]
    told(place, (T + 100, again), ended=T + 200)
    record = read(place)
    assert courses(record) == {
        "1": (T + 1, T + 60, T + 90), "2": (T + 1, None, None), "3": (T + 70, None, None),
    }  # fmt: skip
    assert [(gap.begin, gap.end, gap.bridged) for gap in record.gaps] == [(T + 50, T + 100, True)]


@pytest.mark.parametrize("why", ["long", "job missing", "node down", "driven"])
def test_a_gap_that_may_hide_something_ends_the_stretch(place: Path, why: str) -> None:
    there = [came("1", T + 1), began("1", T + 2)]
    told(place, (T, []), (T + 1, there), ended=T + 50)
    later = T + 50 + (BRIDGED + 1 if why == "long" else 20)
    if why == "driven":
        told(place, (T + 55, there), ended=T + 60, about=info("drive", T + 55))
    look = [] if why == "job missing" else there
    told(place, (later, [*look, *([NodeDown(later, "n4")] if why == "node down" else [])]), ended=later + 50)
    record = read(place)
    assert [(one.begin, one.end) for one in record.stretches] == [(T, T + 50), (later, later + 50)]
    assert [gap.bridged for gap in record.gaps] == [False]
    assert record.gaps[0].why == ("headway drove the cluster" if why == "driven" else "no daemon watched")
    assert courses(record, 0) == {"1": (T + 1, T + 2, None)}
    assert courses(record, 1) == ({} if why == "job missing" else {"1": (T + 1, T + 2, None)})


def test_a_killed_run_knows_no_more_than_its_last_cycle(place: Path) -> None:
    told(place, (T, []), (T + 10, [came("1", T + 10)]))
    told(place, (T + 1000, [came("1", T + 10)]), ended=T + 1100)
    record = read(place)
    assert [(one.begin, one.end) for one in record.stretches] == [(T, T + 10), (T + 1000, T + 1100)]


@pytest.mark.parametrize(("seconds", "vanished"), [(BRIDGED + 1, False), (60.0, True), (60.0, False)])
def test_the_batch_systems_silence_is_a_gap(place: Path, seconds: float, vanished: bool) -> None:
    back = T + 20 + seconds
    told(
        place,
        (T, []),
        (T + 5, [came("1", T + 5), began("1", T + 6)]),
        (T + 20, [ClusterSilent(T + 20)]),
        (back, [ClusterAnswers(back), over("1", back - 5, "vanished" if vanished else "completed")]),
        ended=back + 100,
    )
    record = read(place)
    (gap,) = record.gaps
    assert (gap.begin, gap.end, gap.why) == (T + 20, back, "the batch system did not answer")
    assert gap.bridged is (seconds <= BRIDGED and not vanished)
    assert len(record.stretches) == (1 if gap.bridged else 2)
    if not gap.bridged:
        assert courses(record)["1"] == (T + 5, T + 6, None) and courses(record, 1) == {}


def test_a_time_can_be_chosen(place: Path) -> None:
    told(place, (T, [came("1", T), began("1", T)]), (T + 10, [NodeDown(T + 10, "n4")]),
         (T + 20, [came("2", T + 20), JobHeld(T + 20, "2")]), (T + 30, [over("1", T + 30)]),
         (T + 40, [JobReleased(T + 40, "2"), came("3", T + 40)]), ended=T + 50)  # fmt: skip
    (stretch,) = read(place, T + 15, T + 35).stretches
    assert (stretch.begin, stretch.end) == (T + 20, T + 35)
    assert [one.job.id for one in stretch.courses] == ["1", "2"]
    assert [node.available for node in stretch.cluster.nodes] == [True, True, True, False]
    assert stretch.courses[1].job.held and stretch.changes == []


@pytest.mark.parametrize(
    ("modes", "since", "says"),
    [
        ([], 0.0, "found an empty journal"),
        (["drive"], 0.0, r"found runs of mode drive\. What headway drove is no shadow.*headway starts"),
        (["dry-run"], 0.0, "found runs of mode dry-run"),
        (["monitor"], T + 1e6, "in the time that was asked for, found none; it has 1 at other times"),
    ],
)
def test_what_is_no_record_is_refused(place: Path, modes: list[str], since: float, says: str) -> None:
    Journal.open(place).close()
    for mode in modes:
        told(place, (T, []), ended=T + 9, about=info(mode))
    with pytest.raises(UserError, match=says):
        read(place, since)


def test_several_clusters_with_sites_are_refused(place: Path) -> None:
    several = msgspec.structs.replace(cluster(), sites=Sites(()))
    told(place, (T, []), ended=T + 9, about=info(described=several))
    with pytest.raises(UserError, match="expected the record of one cluster, found that of several clusters"):
        read(place)
