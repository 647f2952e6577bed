"""``headway shadow report``: what it prints and writes, and what it refuses."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from commandline import Headway
from watched_journals import CONFIG, drawn, info, told, watched_run
from watched_journals import EPOCH as T

from headway.cli.as_json import schema_of
from headway.cli.shadow import report
from headway.experiment.planned_starts import RealCluster, encoded
from headway.journal import Journal, schema
from headway.journal.latencies import Latencies
from headway.shadow.findings import Findings


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A journal of 150 jobs under a policy without backfilling."""
    place = tmp_path_factory.mktemp("shadow") / "watched.sqlite"
    watched_run(place, drawn(4, 150, gap=100), "fcfs")
    return place


@pytest.fixture
def site(recorded: Path) -> Iterator[Path]:
    """A configuration in the test's directory."""
    path = Path("site.yaml")
    path.write_text(CONFIG + f"journal: {recorded}\n")
    yield path


def test_it_says_the_main_figures_and_writes_a_page(headway: Headway, site: Path) -> None:
    ran = headway("shadow", "report", "-c", site, "--draws", "2", "--out", "out/shadow.html")
    assert ran.code == 0, ran.err
    assert "headway would have made the wait shorter" in ran.out and "95 % interval" in ran.out
    assert "jobs that came in the first 5 % of a stretch (warm-up): 8, not compared" in ran.out
    assert "assumed: headway has started nothing here" in ran.out
    page = Path("out/shadow.html").read_text()
    assert (
        "headway would have made the wait shorter" in page and "By account" in page and "By user" not in page
    )
    assert sorted(path.name for path in Path("out").iterdir()) == ["shadow.html"]


def test_a_directory_gets_the_page_and_the_json(headway: Headway, site: Path) -> None:
    ran = headway("shadow", "report", "-c", site, "--draws", "2", "--out", "out", "--json", "--users")
    assert ran.code == 0, ran.err
    found = msgspec.json.decode(ran.out, type=Findings)
    assert found == msgspec.json.decode(Path("out/shadow.json").read_bytes(), type=Findings)
    assert "By user" in Path("out/shadow.html").read_text()
    assert found.jobs == 141 and found.draws == 2 and found.plugins == ["easy", "first-fit"]
    shape = schema_of(report)
    assert shape is not None and "Findings" in json.dumps(shape)


def test_the_same_seed_gives_the_same_report(headway: Headway, recorded: Path) -> None:
    words = ("shadow", "report", "--journal", recorded, "--draws", "2", "--json", "--seed")
    first, again = headway(*words, "3"), headway(*words, "3")
    assert first.code == 0 and first.out == again.out


def test_without_a_configuration_the_recorded_one_decides_or_another_policy(
    headway: Headway, recorded: Path
) -> None:
    own = headway("shadow", "report", "--journal", recorded, "--draws", "2", "--json")
    other = headway("shadow", "report", "--journal", recorded, "--policy", "fcfs", "--draws", "2", "--json")
    assert json.loads(own.out)["policy"] == "easy" and json.loads(other.out)["policy"] == "fcfs"
    # Two seconds a start are assumed, and that is all that differs.
    assert abs(json.loads(other.out)["wait"]["difference"]["mean"]) < 60
    assert json.loads(own.out)["wait"]["difference"]["mean"] < -60


def test_measured_latencies_can_be_given(headway: Headway, recorded: Path) -> None:
    draw = random.Random(0)
    delays = Latencies(tuple(draw.uniform(20, 60) for _ in range(50)), (5.0, 6.0), (5.0,), True)
    Path("cluster.json").write_text(encoded(RealCluster("tc", None, delays, {})))
    words = ("shadow", "report", "--journal", recorded, "--policy", "fcfs", "--draws", "2", "--json")
    ran = headway(*words, "--latencies", "cluster.json")
    assert ran.code == 0, ran.err
    found = json.loads(ran.out)
    assert found["delay"]["starts"] == 50 and found["delay"]["whence"] == "the file cluster.json"
    assert found["wait"]["difference"]["mean"] > 20


def test_a_time_can_be_chosen(headway: Headway, recorded: Path) -> None:
    words = ("shadow", "report", "--journal", recorded, "--draws", "2", "--json")
    whole = json.loads(headway(*words).out)
    part = json.loads(headway(*words, "--since", "2023-11-15").out)
    assert part["begin"] > whole["begin"] and part["jobs"] < whole["jobs"]
    late = headway(*words, "--since", "3d")
    assert (
        late.code == 2 and "in the time that was asked for, found none; it has 1 at other times" in late.err
    )
    turned = headway(*words, "--since", "2023-11-15", "--until", "2023-11-14")
    assert turned.code == 2 and "--until: expected a time after --since" in turned.err
    wrong = headway(*words, "--since", "yesterday")
    assert wrong.code == 2 and "expected a time before now (14d, 12h) or a date" in wrong.err


def test_it_reads_beside_the_daemon_that_writes(headway: Headway, recorded: Path, tmp_path: Path) -> None:
    place = tmp_path / "in-use.sqlite"
    watched_run(place, drawn(4, 120), "fcfs")
    with Journal.open(place) as writer:
        writer.begin_run(info(started=T + 1e5))
        writer.record_events(0, T + 1e5, [])
        ran = headway("shadow", "report", "--journal", place, "--draws", "2")
        assert ran.code == 0, ran.err
        assert "no daemon watched; not compared" in ran.out
        writer.record_decisions(0, [])


@pytest.mark.parametrize(
    ("mode", "says"),
    [
        ("drive", "What headway drove is no shadow of what the batch system would have done"),
        ("", "expected a run of mode monitor (`headway run --monitor`), found an empty journal"),
    ],
)
def test_what_is_no_record_is_refused(headway: Headway, tmp_path: Path, mode: str, says: str) -> None:
    place = tmp_path / "other.sqlite"
    Journal.open(place).close()
    if mode:
        told(place, (T, []), ended=T + 5, about=info(mode))
    ran = headway("shadow", "report", "--journal", place)
    assert ran.code == 2 and says in " ".join(ran.err.split())


def test_an_older_schema_and_a_missing_journal_are_refused(
    headway: Headway, recorded: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schema, "SCHEMA_VERSION", 2)
    older = headway("shadow", "report", "--journal", recorded)
    assert older.code == 2 and "an older headway wrote it" in " ".join(older.err.split())
    missing = headway("shadow", "report", "--journal", "none.sqlite")
    assert missing.code == 2 and "none.sqlite" in missing.err and not Path("none.sqlite").exists()


def test_a_place_that_cannot_be_written_is_told_before_the_work(headway: Headway, recorded: Path) -> None:
    Path("file").write_text("")
    ran = headway("shadow", "report", "--journal", recorded, "--out", "file/x")
    assert ran.code == 2 and "expected a directory" in ran.err
