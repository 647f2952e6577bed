"""The metajob's file and record: acceptance 1 and G14."""

from __future__ import annotations

from zoneinfo import ZoneInfo

import pytest
from gur_sites import HALF_PAST_NINE, SEVEN, metajob
from hypothesis import given
from hypothesis import strategies as st

from headway.errors import UserError
from headway_plugins.coscheduling.metajob import (
    Machine,
    Metajob,
    Stage,
    check,
    mistakes,
    of_record,
    to_record,
)
from headway_plugins.coscheduling.metajob_ini import read, write
from headway_plugins.coscheduling.search import Search

SAMPLE = """[metajob]
total_nodes = 12
machine_preference = datastar655, purduesp
machine_preference_reorder = yes
duration = 7200
earliest_start = 07:00_11/09/2004
latest_end = 09:30_11/09/2004
usage_pattern = multiple
machines_dict_string = {
  'datastar655': {'username_string': 'kenneth', 'account_string': 'sys200',
                  'email_notify': 'kenneth@sdsc.edu', 'min_int': 1, 'max_int': 158},
  'purduesp':    {'username_string': 'kenneth', 'account_string': 'TG-STA040001N',
                  'email_notify': 'kenneth@sdsc.edu', 'min_int': 1, 'max_int': 2}}
"""
PIPELINE = """[metajob]
metajob_id = flow
earliest_start = 07:00_11/09/2004
latest_end = 09:30_11/09/2004
timezone = -08:00
usage_pattern = pipeline
stages_list_string = [
{'machine': 'A', 'nodes_int': 8, 'duration': 600},
{'machine': 'B', 'nodes_int': 4, 'duration': 400, 'transfer': 60},
]
"""
LOCAL = ZoneInfo("America/Los_Angeles")


def loaded(text: str) -> Metajob:
    return read(text, name="m", zone=LOCAL)


def complaint(text: str) -> str:
    with pytest.raises(UserError) as caught:
        loaded(text)
    return str(caught.value)


def test_the_papers_sample_loads():
    assert loaded(SAMPLE) == Metajob(
        "m", "multiple", SEVEN, HALF_PAST_NINE, 12, 7200, ("datastar655", "purduesp"), True,
        {
            "datastar655": Machine(1, 158, "sys200", "kenneth", "kenneth@sdsc.edu"),
            "purduesp": Machine(1, 2, "TG-STA040001N", "kenneth", "kenneth@sdsc.edu"),
        },
    )  # fmt: skip


def test_a_field_timezone_counts_more_than_the_hosts_zone():
    assert loaded(SAMPLE + "timezone = UTC\n").earliest == SEVEN - 8 * 3600
    assert loaded(SAMPLE + "timezone = +01:00\n").earliest == SEVEN - 9 * 3600


def test_a_pipeline_loads_and_lines_in_brackets_need_no_indent():
    flow = loaded(PIPELINE)
    assert flow.id == "flow"
    assert flow.stages == (Stage("A", 8, 600), Stage("B", 4, 400, None, 60))
    assert (flow.offsets(), flow.span) == ([0, 660], 1060)


@pytest.mark.parametrize(
    "field",
    ["total_nodes", "duration", "earliest_start", "latest_end", "usage_pattern", "machines_dict_string"],
)
def test_a_missing_field_is_named(field):
    text = SAMPLE.replace(field, f"x{field}")
    assert f"metajob: {field}: missing" in complaint(text).split("\n")


@pytest.mark.parametrize(
    ("old", "new", "field", "what"),
    [
        ("= 12", "= twelve", "total_nodes", "expected a whole number, found 'twelve'"),
        ("= 7200", "= 2 h", "duration", "expected a number of seconds, found '2 h'"),
        ("= 7200", "= 0", "duration", "expected more than 0 s, found 0"),
        ("07:00_11", "7am_11", "earliest_start", "expected a time HH:MM_MM/DD/YYYY"),
        ("07:00_11/09/2004", "02:30_04/04/2004", "earliest_start", "there is no time 02:30_04/04/2004"),
        ("09:30_11/09/2004", "08:00_11/09/2004", "latest_end", "expected at least 7200 s after earliest"),
        ("= multiple", "= several", "usage_pattern", "expected one of multiple, single, pipeline"),
        ("= yes", "= perhaps", "machine_preference_reorder", "expected yes or no, found 'perhaps'"),
        ("datastar655, p", "datastar, p", "machine_preference", "datastar is not among the machines"),
        ("'max_int': 2}", "'max_int': 0}", "machines_dict_string", "purduesp: expected 0 <= min <= max"),
        ("'min_int': 1, 'max_int': 2", "'min_int': -1, 'max_int': 2", "machines_dict_string",
         "purduesp: expected 0 <= min <= max, found min -1"),
        ("'max_int': 2}", "'max': 2}", "machines_dict_string", "purduesp: there is no 'max'."),
        (", 'max_int': 2}", "}", "machines_dict_string", "purduesp: max_int: missing"),
        ("'max_int': 2}", "'max_int': '2'}", "machines_dict_string", "max_int: expected a whole number"),
        ("sdsc.edu', 'min_int': 1, 'max_int': 2", "sdsc.edu, 'min_int': 1, 'max_int': 2",
         "machines_dict_string", "a quote or a bracket may be missing"),
        ("= 12", "= 161", "total_nodes", "expected 2 to 160 nodes"),
    ],
)  # fmt: skip
def test_a_wrong_field_is_named(old, new, field, what):
    assert old in SAMPLE
    lines = complaint(SAMPLE.replace(old, new, 1)).split("\n")
    assert any(line.startswith(f"metajob: {field}: ") and what in line for line in lines), lines


def test_all_mistakes_are_told_at_once():
    text = SAMPLE.replace("= 12", "= x").replace("= yes", "= x").replace("usage_pattern", "usage")
    assert complaint(text).split("\n") == [
        "metajob: usage_pattern: missing",
        "metajob: usage: there is no such field. Did you mean 'usage_pattern'?",
        "metajob: total_nodes: expected a whole number, found 'x'",
        "metajob: machine_preference_reorder: expected yes or no, found 'x'",
    ]


def test_the_dictionary_is_never_evaluated(tmp_path):
    evil = f"open({str(tmp_path / 'made')!r}, 'w')"
    assert "machines_dict_string" in complaint(SAMPLE.replace("'max_int': 2", f"'max_int': {evil}"))
    assert not (tmp_path / "made").exists()


def test_a_file_without_the_section_is_refused():
    assert "expected a section [metajob]" in complaint("[job]\nx = 1\n")
    assert complaint("total_nodes = 12\n").startswith("metajob: File contains no section headers.")


NAMES = st.text("abcxyz_0123456789", min_size=1, max_size=8)
MINUTES = st.integers(0, 10**7).map(lambda minutes: minutes * 60.0)


@st.composite
def metajobs(draw):
    machines = draw(
        st.dictionaries(
            NAMES,
            st.builds(
                lambda low, more, *texts: Machine(low, low + more, *texts),
                st.integers(0, 9), st.integers(1, 9), NAMES, NAMES, NAMES,
            ),
            min_size=1, max_size=3,
        )
    )  # fmt: skip
    low, high = (sum(getattr(one, end) for one in machines.values()) for end in ("min", "max"))
    duration, start = draw(st.integers(1, 10**6)), draw(MINUTES)
    latest = start + 60 * (duration // 60 + 1) + draw(MINUTES)
    return Metajob(
        draw(NAMES), "multiple", start, latest, draw(st.integers(max(low, 1), high)), duration,
        tuple(draw(st.permutations(sorted(machines)))), draw(st.booleans()), machines,
    )  # fmt: skip


@given(metajobs(), st.sampled_from(["UTC", "-08:00", "Europe/Berlin"]))
def test_what_is_written_is_read(wanted, zone):
    assert mistakes(wanted) == []
    assert of_record(to_record(wanted)) == wanted
    # 1970 to 1989: no hour of it comes twice in these zones but for the ends of summer time.
    found = read(write(wanted, zone), name="x", zone=LOCAL)
    if zone != "Europe/Berlin":
        assert found == wanted


def test_g14_what_cannot_be_is_refused_before_any_call():
    impossible = {
        "latest: expected at least 100 s after earliest": metajob(4, 100, (0, 99), A=(1, 8)),
        "total: expected 4 to 12 nodes, the sums of min and max, found 3": metajob(
            3, 10, (0, 99), A=(2, 6), B=(2, 6)
        ),
        "total: expected 2 to 12 nodes, the sums of min and max, found 13": metajob(
            13, 10, (0, 99), A=(1, 6), B=(1, 6)
        ),
        "total: no machine takes 7 nodes": metajob(7, 10, (0, 99), usage="single", A=(1, 6), B=(8, 9)),
        "id: expected a name without a hyphen, found 'a-b'": metajob(1, 10, (0, 99), name="a-b", A=(1, 6)),
        "stages: expected at least one": Metajob("m", "pipeline", 0, 99),
    }
    for line, wanted in impossible.items():
        with pytest.raises(UserError, match="metajob") as caught:
            Search(wanted)
        assert line in str(caught.value)
    check(metajob(4, 99, (0, 99), A=(1, 8)))


def test_a_record_with_a_wrong_field_is_refused_with_its_place():
    record = {"id": "m", "usage": "multiple", "earliest": 0, "latest": 9, "machines": {"A": {"min": "x"}}}
    with pytest.raises(UserError, match=r"metajob m: .*machines"):
        of_record(record)
