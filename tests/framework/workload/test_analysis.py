"""The study of a workload: small traces counted by hand, clocks and zones, and what the tables add up to."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.errors import UserError
from headway.model.classes import ClassBounds
from headway.workload import Trace, offered_load, read_trace
from headway.workload.analysis import COLUMNS, Study, clock_of, study

#: Columns of the records.
SUBMIT, RUNTIME, ALLOCATED, SIZE, ESTIMATE, STATUS = 1, 3, 4, 7, 8, 10

DAY = 86_400


def traced(*jobs: tuple[float, ...], **header: str) -> Trace:
    """Jobs as (submit, runtime, size[, estimate[, status]])."""
    records = np.full((len(jobs), 18), -1.0)
    for row, values in zip(records, jobs, strict=True):
        row[[SUBMIT, RUNTIME, SIZE, ESTIMATE, STATUS][: len(values)]] = values
    return Trace("small.swf", fields=header, records=records)


def column(found: Study, table: str, name: str) -> list[Any]:
    return [row[name] for row in found.tables[table]]


#: On 8 processors: 30 s on 1, an hour on 1, 3601 s on 1, 10 minutes on 2, 9 hours on 40, one of unknown
#: runtime; over two days.
SIX = traced(
    (0, 30, 1), (3600, 3600, 1), (7200, 3601, 1), (7300, 600, 2), (DAY, 9 * 3600, 40), (DAY + 5, -1, 4),
    MaxProcs="8",
)  # fmt: skip


# --------------------------------------------------------------------------------- classes and cells


def test_classes_count_jobs_and_work() -> None:
    found = study(SIX)
    rows = {row["class"]: row for row in found.tables["classes"]}
    assert {name: row["jobs"] for name, row in rows.items()} == {
        "SN": 2, "LN": 1, "SW": 1, "LW": 1, "narrow": 3, "wide": 2, "short": 3, "long": 2, "all": 5,
    }  # fmt: skip
    assert rows["SN"]["share"] == 0.4
    assert rows["SN"]["processor_seconds"] == 3630
    assert rows["SW"]["processor_seconds"] == 1200
    total = 30 + 3600 + 3601 + 1200 + 40 * 32_400
    assert rows["LW"]["work_share"] == pytest.approx(40 * 32_400 / total)
    assert rows["narrow"]["mean_runtime"] == pytest.approx((30 + 3600 + 3601) / 3)
    assert (rows["SN"]["runtime_median"], rows["SN"]["runtime_max"]) == (1815, 3600)
    assert rows["wide"]["mean_processors"] == 21
    assert rows["all"]["mean_accuracy"] is None


def test_the_bounds_of_narrow_and_short_belong_to_them() -> None:
    rows = study(SIX, bounds=ClassBounds(narrow=2, short=30)).tables["classes"]
    assert [row["jobs"] for row in rows[:4]] == [1, 3, 0, 1]


def test_cells_are_those_of_the_paper_s_table_by_upper_bounds() -> None:
    cells = study(SIX).tables["cells"]
    assert len(cells) == 7 * 3
    there = {
        (row["length_to"], row["width_from"], row["width_to"]): row["jobs"] for row in cells if row["jobs"]
    }
    assert there == {(60, 1, 1): 1, (3600, 1, 1): 1, (14_400, 1, 1): 1, (600, 2, 32): 1, (None, 33, None): 1}
    first, last = cells[0], cells[-1]
    assert (first["length_above"], last["length_above"]) == (None, 28_800)
    assert (first["share"], sum(row["share"] for row in cells)) == (0.2, pytest.approx(1))


def test_an_upper_bound_belongs_to_its_cell() -> None:
    trace = traced((0, 60, 32), (0, 61, 33), (0, 28_800, 32), (0, 28_801, 1))
    there = [(row["length_to"], row["width_to"]) for row in study(trace).tables["cells"] if row["jobs"]]
    assert there == [(60, 32), (600, None), (28_800, 32), (None, 1)]


def test_bins_can_be_others() -> None:
    cells = study(SIX, length_bounds=(3600,), width_bounds=(1, 2, 8)).tables["cells"]
    assert [row["jobs"] for row in cells] == [2, 1, 0, 0, 1, 0, 0, 1]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"length_bounds": ()}, "lengths: expected upper bounds that rise from above 0, found none"),
        ({"length_bounds": (60, 60)}, "lengths: .* found 60, 60"),
        ({"length_bounds": (0, 60)}, "lengths: .* found 0, 60"),
        ({"width_bounds": (4, float("inf"))}, "widths: .* found 4, inf"),
        ({"zone": "Europe/Atlantis"}, "time zone: expected a name .* found 'Europe/Atlantis'"),
        ({"zone": "../../etc/passwd"}, "time zone: expected a name"),
    ],
)
def test_what_cannot_be_is_said(options: dict[str, Any], said: str) -> None:
    with pytest.raises(UserError, match=said):
        study(traced((0, 1, 1), UnixStartTime="1000000000"), **options)


def test_no_jobs_cannot_be_studied() -> None:
    with pytest.raises(UserError, match=r"small\.swf: expected jobs to analyse, found none"):
        study(traced())


# ------------------------------------------------------------------------------------------ arrivals


def dated(*times: datetime, **header: str) -> Trace:
    """Jobs of one processor and an hour at these moments; the trace begins an hour before the first."""
    epoch = times[0].timestamp() - 3600
    jobs = [(time.timestamp() - epoch, 3600, 1) for time in times]
    return traced(*jobs, UnixStartTime=f"{epoch:.0f}", MaxProcs="1", **header)


#: A Friday in winter, and the Saturday a week later, in UTC.
FRIDAY = datetime(2009, 2, 20, 23, 30, tzinfo=UTC)
SATURDAY = datetime(2009, 2, 28, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("header", "zone", "hours", "weekdays", "days"),
    [
        ({}, "UTC", (23, 12), (4, 5), 9),
        ({"TimeZone": "3600"}, "UTC+01:00", (0, 13), (5, 5), 8),
        ({"TimeZone": "-28800"}, "UTC-08:00", (15, 4), (4, 5), 9),
        ({"TimeZoneString": "Europe/Stockholm", "TimeZone": "0"}, "Europe/Stockholm", (0, 13), (5, 5), 8),
        ({"TimeZoneString": "Mars/Olympus", "TimeZone": "3600"}, "UTC+01:00", (0, 13), (5, 5), 8),
        ({"TimeZone": "soon"}, "UTC", (23, 12), (4, 5), 9),
        ({"TimeZone": "86400"}, "UTC", (23, 12), (4, 5), 9),
    ],
)
def test_hours_and_days_are_those_of_the_header_s_zone(
    header: dict[str, str], zone: str, hours: tuple[int, int], weekdays: tuple[int, int], days: int
) -> None:
    found = study(dated(FRIDAY, SATURDAY, **header))
    assert found.zone == zone
    counts = column(found, "hours", "jobs")
    assert [hour for hour, count in enumerate(counts) if count] == sorted(set(hours))
    assert [day for day, count in enumerate(column(found, "weekdays", "jobs")) if count] == sorted(
        {*weekdays}
    )
    assert len(found.tables["days"]) == days
    assert found.tables["days"][0]["weekday"] == ("Friday" if weekdays[0] == 4 else "Saturday")


def test_a_zone_that_is_given_counts_instead_of_the_header_s() -> None:
    trace = dated(FRIDAY, SATURDAY, TimeZoneString="Europe/Stockholm")
    found = study(
        trace, zone="US/Pacific" if Path("/usr/share/zoneinfo/US/Pacific").exists() else "Etc/GMT+8"
    )
    assert found.tables["hours"][15]["jobs"] == 1


def test_summer_time_counts() -> None:
    # 12:00 in UTC is 13:00 in Stockholm in winter and 14:00 in summer.
    winter, summer = datetime(2009, 3, 28, 12, tzinfo=UTC), datetime(2009, 3, 29, 12, tzinfo=UTC)
    clock = clock_of(dated(winter, summer, TimeZoneString="Europe/Stockholm"))
    assert clock.hour.tolist() == [13, 14]


def test_without_a_start_time_hours_count_from_time_0_and_there_are_no_weekdays() -> None:
    found = study(traced((3600, 10, 1), (DAY + 7200, 10, 1)))
    assert found.tables["hours"][1]["jobs"] == 1
    assert found.tables["hours"][2]["jobs"] == 1
    assert found.tables["weekdays"] == []
    assert column(found, "days", "day") == ["0", "1"]
    assert found.zone == ""
    assert any("no UnixStartTime" in note for note in found.notes)


def test_dates_that_do_not_exist_are_left_out() -> None:
    found = study(traced((0, 10, 1), (4e11, 10, 1), UnixStartTime="1000000000"))
    assert found.tables["weekdays"] == []
    assert found.tables["days"] == []
    assert sum(column(found, "hours", "jobs")) == 2
    assert any("have no dates" in note for note in found.notes)
    assert any("days are not listed" in note for note in found.notes)
    with pytest.raises(UserError, match=r"expected submit times in seconds, found 0 to 1e\+13"):
        study(traced((0, 10, 1), (1e13, 10, 1)))


def test_hours_know_their_mean_and_their_most() -> None:
    rows = study(traced((0, 1, 1), (10, 1, 1), (DAY, 1, 1), (3 * DAY, 5, 2))).tables["hours"]
    assert (rows[0]["jobs"], rows[0]["mean"], rows[0]["max"]) == (4, 1.0, 2)
    assert (rows[0]["processor_seconds"], rows[0]["work_share"]) == (13, 1)
    assert (rows[1]["jobs"], rows[1]["max"]) == (0, 0)


def test_weekdays_know_how_often_they_came() -> None:
    # From Friday to the Saturday of the week after: two Fridays, two Saturdays, one of the others.
    found = study(dated(FRIDAY, FRIDAY, SATURDAY))
    assert column(found, "weekdays", "days") == [1, 1, 1, 1, 2, 2, 1]
    assert column(found, "weekdays", "mean")[4:6] == [1.0, 0.5]


def test_days_without_jobs_are_listed_too_and_loads_are_of_24_hours() -> None:
    rows = study(traced((0, DAY, 2), (2 * DAY, DAY / 2, 4), (2 * DAY + 1, 30, 1), MaxProcs="4")).tables[
        "days"
    ]
    assert [row["jobs"] for row in rows] == [1, 0, 2]
    assert [row["load"] for row in rows] == [0.5, 0, pytest.approx(0.5 + 30 / (4 * DAY))]


def test_the_offered_load_is_that_of_the_filters() -> None:
    found = study(SIX)
    assert found.summary["offered_load"] == pytest.approx(offered_load(SIX, 8))
    assert study(SIX, processors=16).summary["offered_load"] == pytest.approx(offered_load(SIX, 16))
    assert found.summary["days_above_capacity"] == 1
    assert found.summary["busiest_day_load"] == 40 * 32_400 / (8 * DAY)
    assert any("1 jobs are larger than the machine's 8" in note for note in found.notes)


def test_without_a_machine_there_is_no_load() -> None:
    found = study(traced((0, 10, 1), (20, 10, 1)))
    assert found.summary["offered_load"] is None
    assert found.summary["busiest_day_load"] is None
    assert column(found, "days", "load") == [None]
    assert any("no machine size" in note for note in found.notes)


def test_jobs_at_one_instant_have_no_load() -> None:
    found = study(traced((5, 10, 1), (5, 10, 1), MaxProcs="4"))
    assert (found.summary["offered_load"], found.summary["jobs_per_day"]) == (None, None)
    assert found.summary["mean_gap"] == 0


# -------------------------------------------------------------------------------- sizes and estimates


def test_sizes_are_between_powers_of_two() -> None:
    found = study(traced(*((0, 10, size) for size in (1, 1, 2, 3, 4, 6, 8, 9, 32))))
    rows = found.tables["sizes"]
    assert [(row["from"], row["to"], row["jobs"], row["powers_of_two"]) for row in rows] == [
        (1, 1, 2, 2), (2, 2, 1, 1), (3, 4, 2, 1), (5, 8, 2, 1), (9, 16, 1, 0), (17, 32, 1, 1),
    ]  # fmt: skip
    assert found.summary["serial"] == pytest.approx(2 / 9)
    assert found.summary["powers_of_two"] == pytest.approx(6 / 9)
    assert found.summary["parallel_powers_of_two"] == pytest.approx(4 / 7)
    assert found.summary["parallel_even"] == pytest.approx(5 / 7)
    assert (found.summary["max_processors"], found.summary["median_processors"]) == (32, 4)


def test_accuracy_is_runtime_over_estimate() -> None:
    # Accuracies 0, 0.1, 0.11, 0.95, 1, 1 (failed), 1.5 (completed), 1.5 (cancelled); one has none.
    jobs = [(0, runtime, 1, 100, 1) for runtime in (0, 10, 11, 95, 100)]
    jobs += [(0, 100, 1, 100, 0), (0, 150, 1, 100, 1), (0, 150, 1, 100, 5), (0, 70, 1, -1, 1)]
    found = study(traced(*jobs))
    rows = found.tables["accuracy"]
    assert [row["jobs"] for row in rows] == [2, 1, 0, 0, 0, 0, 0, 0, 0, 1, 2, 2]
    assert [(row["above"], row["to"]) for row in rows[-3:]] == [(0.9, 1), (1, 1), (1, None)]
    summary = found.summary
    assert summary["estimated"] == 8
    assert summary["exact_estimates"] == 2 / 8
    assert summary["at_limit"] == 4 / 8
    assert summary["killed_at_limit"] == 2 / 8
    assert summary["median_accuracy"] == pytest.approx(0.975)


def test_no_estimates_and_no_status_are_no_accuracy() -> None:
    found = study(traced((0, 10, 1)))
    assert {found.summary[key] for key in ("exact_estimates", "at_limit", "killed_at_limit")} == {None}
    assert sum(column(found, "accuracy", "jobs")) == 0
    assert any("No job has an estimate" in note for note in found.notes)
    assert study(traced((0, 10, 1, 10))).summary["killed_at_limit"] is None


def test_what_is_not_known_is_counted_and_left_out() -> None:
    trace = traced((0, -1, 4), (10, 50, -1), (20, 0, 2), MaxProcs="8")
    found = study(trace)
    summary = found.summary
    assert (summary["jobs"], summary["measured"], summary["zero_runtime"]) == (3, 1, 1)
    assert (summary["unknown_runtime"], summary["unknown_size"]) == (1, 1)
    assert sum(column(found, "hours", "jobs")) == 3
    assert sum(column(found, "cells", "jobs")) == 1
    assert sum(column(found, "sizes", "jobs")) == 2
    assert any("2 of 3 jobs have no known runtime or size" in note for note in found.notes)


def test_nothing_but_submissions_is_a_study_too() -> None:
    found = study(traced((0, -1, -1), (10, -1, -1), MaxProcs="8"))
    assert found.tables["sizes"] == []
    assert {row["jobs"] for row in found.tables["classes"]} == {0}
    assert found.summary["mean_runtime"] is None


def test_the_size_is_what_was_asked_for_else_what_was_got() -> None:
    trace = traced((0, 10, -1), (0, 10, 3))
    records = trace.records.copy()
    records[:, ALLOCATED] = (5, 4)
    found = study(Trace("x", records=records))
    assert found.summary["mean_processors"] == 4


# ------------------------------------------------------------------------------------------ as a whole

any_job = st.tuples(
    st.integers(0, 40 * DAY), st.integers(-1, 200_000), st.integers(-1, 3000), st.integers(-1, 200_000),
    st.integers(-1, 5),
)  # fmt: skip


@settings(max_examples=80, deadline=None)
@given(st.lists(any_job, min_size=1, max_size=40), st.sampled_from(["", "0", "1234567890"]))
def test_every_table_adds_up(jobs: list[tuple[int, ...]], epoch: str) -> None:
    found = study(
        traced(*sorted(jobs), UnixStartTime=epoch, TimeZoneString="Europe/Stockholm", MaxProcs="64")
    )
    for name, rows in found.tables.items():
        assert all(tuple(row) == COLUMNS[name] for row in rows)
    submitted, measured = found.summary["jobs"], found.summary["measured"]
    for name in ("hours", "days"):
        assert sum(column(found, name, "jobs")) == submitted
    assert sum(column(found, "weekdays", "jobs")) in (0, submitted)
    assert sum(column(found, "cells", "jobs")) == measured
    assert sum(column(found, "classes", "jobs")[:4]) == measured == column(found, "classes", "jobs")[-1]
    assert sum(column(found, "sizes", "jobs")) == submitted - found.summary["unknown_size"]
    assert sum(column(found, "accuracy", "jobs")) == found.summary["estimated"]
    work = found.summary["processor_seconds"]
    for name in ("hours", "days", "cells", "sizes"):
        assert sum(column(found, name, "processor_seconds")) == pytest.approx(work)
    assert sum(row["days"] for row in found.tables["weekdays"]) in (0, len(found.tables["days"]))


@pytest.mark.traces
def test_a_real_trace(trace_dir: Path) -> None:
    trace = read_trace(trace_dir / "SDSC-BLUE-2000-4.1-cln.swf.gz")
    found = study(trace)
    assert (found.summary["jobs"], found.summary["processors"]) == (243_314, 1152)
    assert found.zone == "US/Pacific" or found.zone == "UTC-08:00"
    assert found.summary["offered_load"] == pytest.approx(offered_load(trace, 1152))
    assert found.summary["parallel_even"] == 1, "nodes have eight processors"
    weekdays = column(found, "weekdays", "mean")
    assert max(weekdays[5:]) < 0.6 * min(weekdays[:5])
