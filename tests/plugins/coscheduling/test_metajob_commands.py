"""``headway metajob``: files, requests, and what is said of a metajob."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from building import traced
from metajob_world import World, multiple, sites
from scripted_daemon import Start, headway, scripted

from headway.errors import UserError
from headway.service.protocol import Plugin, Reply
from headway_plugins.coscheduling.metajob_file import read_file
from headway_plugins.coscheduling.metajob_status import in_words, list_in_words

YAML = """
usage: multiple
earliest: 2026-11-09T07:00+00:00
latest: 2026-11-09T09:30:00+00:00
duration: 2h
total: 12
preference: [datastar655, purduesp]
reorder: yes
machines:
  datastar655: {min: 1, max: 158}
  purduesp: {min: 1, max: 2}
"""
INI = """[metajob]
total_nodes = 12
machine_preference = datastar655, purduesp
duration = 7200
earliest_start = 07:00_11/09/2026
latest_end = 09:30_11/09/2026
timezone = UTC
usage_pattern = multiple
machines_dict_string = {
  'datastar655': {'min_int': 1, 'max_int': 158},
  'purduesp': {'min_int': 1, 'max_int': 2}}
"""


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Start]:
    with scripted(tmp_path) as start:
        yield start


def metajob(*words: str) -> int:
    return headway("metajob", *words)


def test_both_forms_of_a_file_say_the_same(tmp_path):
    (tmp_path / "m.yaml").write_text(YAML)
    (tmp_path / "m.ini").write_text(INI)
    written, classic = read_file(tmp_path / "m.yaml"), read_file(tmp_path / "m.ini")
    assert written == classic
    assert (written.earliest, written.latest, written.duration) == (1794207600.0, 1794216600.0, 7200.0)


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("m.yaml", YAML.replace("2h", "long"), "duration: expected"),
        ("m.yaml", YAML.replace("07:00+00:00", "7 o'clock"), "earliest: expected a time"),
        ("m.yaml", YAML + "colour: red\n", "colour"),
        ("m.yaml", YAML.replace("total: 12", "total: 200"), "total: expected 2 to 160"),
        ("m.yaml", "[1]", "m.yaml"),
        ("m.ini", INI.replace("duration = 7200", ""), "duration: missing"),
        ("m.ini", "\ud800", "m.ini"),
    ],
)
def test_a_file_that_is_wrong_is_refused_with_its_place(tmp_path, name, text, says):
    (tmp_path / name).write_text(text, errors="surrogatepass")
    with pytest.raises(UserError, match=r"m\.(yaml|ini)") as error:
        read_file(tmp_path / name)
    assert says in str(error.value)


def test_a_metajob_is_submitted_with_its_jobs(site, tmp_path, capsys):
    config, inbox = site(Reply("accepted", "metajob m1: a place is looked for"))
    (tmp_path / "m.yaml").write_text(YAML)
    words = ("--job", "datastar655=4711", "--job", "purduesp=92[1].pbs", "--on-loss", "replan")
    assert metajob("submit", str(tmp_path / "m.yaml"), *words, "-c", config) == 0
    assert capsys.readouterr().out == "accepted: metajob m1: a place is looked for\n"
    (asked,) = inbox.asked
    assert isinstance(asked, Plugin) and (asked.plugin, asked.verb) == ("metajobs", "submit")
    told = json.loads(asked.text)
    assert told["jobs"] == {"datastar655": "4711", "purduesp": "92[1].pbs"}
    assert told["on_loss"] == "replan" and told["metajob"]["total"] == 12


def test_copies_at_every_machine_are_submitted(site, tmp_path, capsys):
    config, inbox = site(Reply("accepted", "metajob m1: its copies wait"))
    (tmp_path / "m.yaml").write_text(YAML.replace("multiple", "single").replace("12", "2"))
    words = ("--everywhere", "--job", "datastar655=4711", "--job", "purduesp=92")
    assert metajob("submit", str(tmp_path / "m.yaml"), *words, "-c", config) == 0
    told = json.loads(inbox.asked[0].text)
    assert told["everywhere"] is True and told["jobs"] == {"datastar655": "4711", "purduesp": "92"}


@pytest.mark.parametrize("pair", ["4711", "=4711", "a=", "a= "])
def test_a_pair_that_is_none_is_refused(site, tmp_path, capsys, pair):
    config, inbox = site()
    (tmp_path / "m.yaml").write_text(YAML)
    assert metajob("submit", str(tmp_path / "m.yaml"), "--job", pair, "-c", config) == 2
    assert "expected MACHINE=ID" in capsys.readouterr().err and inbox.asked == []


def test_a_refusal_is_told_and_fails(site, capsys):
    config, _ = site(Reply("refused", "there is no metajob of yours with this id"))
    assert metajob("cancel", "m7", "-c", config) == 1
    assert "refused: there is no metajob of yours" in capsys.readouterr().err


def test_the_status_is_told_in_words_and_in_json(site, capsys):
    jobs = [traced("a:2", 6, 100, 0, pool="a:q", user="ann"), traced("a:1", 8, 50, 0, pool="a:q")]
    world = World(sites(a=8, b=8), jobs)
    world.submit(multiple(8, A=(6, 6), B=(2, 2)), {"A": "a:2"})
    world.run(until=5)
    shown, listed = world.ask(6.0, "status", "m1"), world.ask(6.0, "status")
    world.run(until=7)
    one, several = (world.replies[request].reason for request in (shown, listed))

    config, _ = site(Reply("accepted", one), Reply("accepted", several), Reply("accepted", one))
    assert metajob("status", "m1", "-c", config) == 0
    said = capsys.readouterr().out
    assert "metajob m1 of ann (multiple): reserved: all parts are reserved" in said
    assert "A: 6 nodes from" in said and "job a:2 is bound" in said and "the search so far" in said
    assert metajob("status", "-c", config) == 0
    assert capsys.readouterr().out.startswith("m1 of ann (multiple): reserved")
    assert metajob("status", "m1", "--json", "-c", config) == 0
    assert json.loads(capsys.readouterr().out)["phase"] == "reserved"


def test_every_row_of_a_search_has_words():
    row = {
        "id": "m1", "user": "ann", "usage": "multiple", "phase": "refused", "why": "no distribution",
        "earliest": 0.0, "latest": 9.0, "submitted": 0.0, "rounds": 3, "asks": ["cancel", "A"],
        "losses": ["m1-1-A: the reservation is gone"], "leaks": [["A", "m1-2-A"]], "start": None,
        "parts": [], "copies": [],
        "search": [
            ["P", "A", 2, None], ["P", "A", 2, 5.0], ["M", "A", 2, 5.0], ["D", "B", 2, "place"],
            ["D", "B", 2, "the site refused it: no"], ["X", "A"], ["L", "A"], ["B", "A"],
        ],
    }  # fmt: skip
    said = "\n".join(in_words(msgspec.json.decode(msgspec.json.encode(row)), str))
    assert "B refuses 2 nodes: place (no room before the latest end" in said
    assert "an operator can remove it" in said and "waits for the answer of A (cancel)" in said
    assert list(list_in_words([], str)) == ["no metajobs"]
