"""Sites in a configuration: what is said of them, and what is wrong with it."""

from __future__ import annotations

import datetime
import zoneinfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.config import parse_config
from headway.config.sites import spans_of
from headway.decisions import Copy, Drop
from headway.errors import UserError
from headway.inputs.sizes import bytes_of, said_bytes
from headway.model import ClusterDescription
from headway.model.site_hours import opens_and_closes
from headway.model.sites import WEEK, Dataset, Intake, Link, Site, Store, datasets_of, united

TEXT = """
clusters:
  oslo:
    emulation: {processors: 8, licences: {matlab: 2}}
    site:
      owner: met
      zone: Europe/Oslo
      calendar: ["mon-tue 18:00-06:00", "tue 20:00-24:00"]
      store: {capacity: 1TB}
  graz:
    emulation: {nodes: [{count: 2, processors: 4}]}
    site: {store: {}}
links:
  - {between: [oslo, graz], bandwidth: 125MB/s, latency: 0.02}
datasets:
  era5: {size: 600GB, at: [oslo, graz]}
"""
HOUR = 3600


def refused(text: str) -> str:
    with pytest.raises(UserError) as error:
        parse_config(text, "site.yaml").emulated_clusters()
    return str(error.value)


def test_clusters_become_one_with_sites():
    cluster = parse_config(TEXT).emulated_clusters()
    assert cluster is not None and cluster.sites is not None
    assert [pool.name for pool in cluster.pools] == ["oslo:pool", "graz:pool"]
    assert [(node.name, node.pools) for node in cluster.nodes] == [
        ("graz:n1", ("graz:pool",)), ("graz:n2", ("graz:pool",)),
    ]  # fmt: skip
    assert cluster.licences == (("oslo:matlab", 2),)
    day = 24 * HOUR
    nights = (18 * HOUR, 30 * HOUR), (day + 18 * HOUR, day + 30 * HOUR)
    assert cluster.sites.sites == (
        Site("oslo", ("oslo:pool",), "met", "Europe/Oslo", nights, Store(10**12, 4)),
        Site("graz", ("graz:pool",), store=Store(0, 4)),
    )  # fmt: skip
    assert cluster.sites.links == (Link("oslo", "graz", 125e6, 0.02), Link("graz", "oslo", 125e6, 0.02))
    assert cluster.sites.datasets == (Dataset("era5", 600 * 10**9, ("oslo", "graz")),)


def test_how_jobs_of_other_clusters_come_in():
    text = TEXT.replace("{store: {}}", '{store: {}, submit_as: [sudo, -u, "{user}", --], account: guests}')
    intakes = parse_config(text).intakes()
    assert intakes == {"oslo": Intake(), "graz": Intake(("sudo", "-u", "{user}", "--"), "guests")}


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("[oslo, graz], bandwidth", "[oslo, gratz], bandwidth",
         "site.yaml: links[0].between: expected one of oslo, graz, found 'gratz'. Did you mean 'graz'?"),
        ("[oslo, graz], bandwidth", "[oslo, oslo], bandwidth", "two different clusters, found 'oslo' twice"),
        ("125MB/s", "125MB/h", "a rate such as 125MB/s or 1GB/s"),
        ("600GB", "much", "an amount such as 200GB"),
        ("600GB", "2TB", "the store of oslo has 1000000000000 bytes left, and era5 has 2000000000000"),
        ("{store: {}}", "{}", "datasets.era5.at[1]: expected a cluster with site.store, found graz"),
        ("mon-tue 18", "mon-tues 18", "days and perhaps times"),
        ("18:00-06:00", "18:75-06:00", "times of day up to 24:00"),
        ("{store: {}}", "{store: {}, submit_as: [sudo, -u, root]}", "a word with {user}"),
        ("Europe/Oslo", "Oslo", "a time zone such as Europe/Berlin"),
        ("emulation: {nodes: [{count: 2, processors: 4}]}\n    ", "",
         "clusters: emulation for each cluster or for none, found none for graz"),
        ("{nodes: [{count: 2, processors: 4}]}", "{}",
         "clusters.graz.emulation: expected processors or nodes, found neither"),
        ("  - {between", "  - {between: [graz, oslo], bandwidth: 1}\n  - {between",
         "there is a link from oslo to graz already"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told(old, new, message):
    assert old in TEXT
    assert message in refused(TEXT.replace(old, new, 1))


def test_links_need_clusters():
    assert "links only beside clusters" in refused("links: [{between: [a, b], bandwidth: 1}]")


@pytest.mark.parametrize(
    ("text", "spans"),
    [
        ("mon 08:00-10:00", [(8 * HOUR, 10 * HOUR)]),
        ("sun 22:00-02:00", [(6 * 86400 + 22 * HOUR, WEEK), (0, 2 * HOUR)]),
        ("sat-mon", [(5 * 86400, 6 * 86400), (6 * 86400, WEEK), (0, 86400)]),
        ("tue,thu 12:00-24:00", [(86400 + 12 * HOUR, 2 * 86400), (3 * 86400 + 12 * HOUR, 4 * 86400)]),
    ],
)
def test_spans_of_the_week(text, spans):
    assert spans_of(text) == spans


def test_spans_that_overlap_are_one():
    assert united([(5, 9), (0, 2), (8, 12), (2, 3)]) == ((0, 3), (5, 12))


@pytest.mark.parametrize(
    ("text", "size"),
    [("200GB", 2e11), ("1.5 TB", 1.5e12), ("512MiB", 2**29), ("10", 10), ("kB", None), ("1XB", None)],
)
def test_amounts_of_data(text, size):
    assert bytes_of(text) == size


def test_datasets_of_a_job():
    assert datasets_of({"data": "a, b,,a"}) == ("a", "b")
    assert datasets_of(None) == () and datasets_of({"data": ""}) == ()


HALF_HOURS = st.lists(st.tuples(st.integers(0, 335), st.integers(1, 40)), min_size=1, max_size=5)
#: With clocks that are put on and back in them: spring and autumn of 2024.
MOMENTS = st.integers(1711000000, 1712400000) | st.integers(1729700000, 1730900000)


@given(spans=HALF_HOURS, start=MOMENTS, zone=st.sampled_from(["Europe/Oslo", "UTC", "Australia/Lord_Howe"]))
@settings(max_examples=150, deadline=None)
def test_a_calendar_goes_by_the_clock_of_its_zone(spans, start, zone):
    """Between now and the moment that is given the answer is the same; then it is another one."""
    week = [(begin * 1800, min((begin + length) * 1800, WEEK)) for begin, length in spans]
    site = Site("s", zone=zone, calendar=united(week))

    def is_open(time: float) -> bool:
        local = datetime.datetime.fromtimestamp(time, zoneinfo.ZoneInfo(zone))
        second = local.weekday() * 86400 + local.hour * 3600 + local.minute * 60 + local.second
        return any(begin <= second < end for begin, end in site.calendar)

    now = float(start)
    for _ in range(6):
        answer, until = opens_and_closes(site, now)
        assert answer == is_open(now) and until > now
        step = max(60.0, (until - now) / 200) if until < float("inf") else 86400.0
        at = now
        for _ in range(220):
            at += step
            if at >= until:
                break
            assert is_open(at) == answer
        if until == float("inf"):
            return
        assert is_open(until) != answer
        now = until


LIVE = """
clusters:
  oslo: {adapter: slurm, site: {store: {path: "/data"}}}
  graz: {adapter: slurm, site: {store: {path: "login:"}}}
  ulm: {adapter: slurm}
transfers:
  copy: [cp, -r, "{source}", "{target}"]
  remove: [rm, -rf, "{store}/{dataset}"]
"""


def test_the_commands_of_transfers_and_the_stores_that_they_name():
    config = parse_config(LIVE)
    found = config.live_transfers(read_only=True)
    assert found.stores == {"oslo": "/data", "graz": "login:"}
    assert (found.place("oslo", "x"), found.place("graz", "x")) == ("/data/x", "login:x")
    assert found.read_only and not config.live_transfers().read_only
    assert {Copy, Drop} <= config.capabilities(ClusterDescription.flat(1))
    no_remove = parse_config(LIVE.split("  remove")[0]).capabilities(ClusterDescription.flat(1))
    assert Copy in no_remove and Drop not in no_remove
    no_store = parse_config(LIVE.replace("site: {store", "site: {owner: x} } #"))
    assert not {Copy, Drop} & no_store.capabilities(ClusterDescription.flat(1))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("{target}", "{there}",
         "copy: expected the placeholders {source}, {target}, {dataset}, found {there}"),
        ('"{source}", ', "", "copy: expected {source} in the command, found none"),
        ("{store}/", "", "remove: expected {store} in the command, found none"),
        ("[cp, -r,", '["{dataset}",', "copy: expected a program as the first word, found '{dataset}'"),
        ("[cp, -r,", '["",', "copy: expected a program as the first word, found ''"),
        ("-r,", '"\\0",', "copy: words cannot hold a null character"),
        ('"/data"', "-data", "a path that begins with no dash and has no blanks at its ends, found '-data'"),
    ],
)  # fmt: skip
def test_commands_that_make_no_sense_are_refused(old: str, new: str, message: str) -> None:
    assert old in LIVE
    with pytest.raises(UserError) as error:
        parse_config(LIVE.replace(old, new), "site.yaml")
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("size", "said"),
    [(0, "0 B"), (999, "999 B"), (1000, "1 kB"), (1536, "1.54 kB"), (33_000_000, "33 MB"), (999.7e9, "1 TB"),
     (2e12, "2 TB"), (4e15, "4 PB"), (5e18, "5000 PB")],
)  # fmt: skip
def test_amounts_for_a_person(size: float, said: str) -> None:
    assert said_bytes(size) == said
