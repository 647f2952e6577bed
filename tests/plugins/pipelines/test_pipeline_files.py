"""Pipelines and profiles in files: what they mean, and what is refused where."""

import json

import pytest

from headway.errors import UserError
from headway_plugins.pipelines.pipeline import read_pipeline
from headway_plugins.pipelines.profiles import Profile, Store

ID3 = """
program: id3
parameters: {minimum: [0.5, 1], mode: [fast, slow]}
filters:
  - {name: read, data_nodes: 4}
  - {name: count, stream: labeled}
  - {name: decide, to: read, stream: broadcast}
command: [./id3, "--minimum={minimum}", "{mode}"]
"""


@pytest.fixture
def read(tmp_path):
    def reading(text):
        path = tmp_path / "id3.yaml"
        path.write_text(text, encoding="utf-8")
        return read_pipeline(path)

    return reading


def test_a_pipeline(read):
    pipeline = read(ID3)
    assert pipeline.names == ("read", "count", "decide")
    assert pipeline.broadcasts == (False, False, True)
    assert pipeline.caps == (4, None, None)
    assert pipeline.called({"minimum": 0.5, "mode": "fast"}) == ["./id3", "--minimum=0.5", "fast"]
    assert len(pipeline.combinations()) == 4


def test_filters_in_any_order(read):
    text = "program: p\nfilters: [{name: a, to: c}, {name: b, stream: broadcast, to: a}, {name: c, to: b}]"
    assert read(text).names == ("a", "c", "b")


@pytest.mark.parametrize(
    ("filters", "said"),
    [
        ("[]", "filters: "),
        ("[{name: a, to: b}]", "filters: a: there is no filter 'b'"),
        ("[{name: a}, {name: b}, {name: a}]", "filters: 'a' is there twice"),
        ("[{name: a}, {name: b}, {name: c, to: b}]",
         "c streams back to b: only the last filter may, and to the first (a)"),
        ("[{name: a, to: a}, {name: b}]", "nothing streams to b: the row is a"),
        ("[{name: a, to: c}, {name: b}, {name: c}]", "nothing streams to b: the row is a, c"),
        ("[{name: a}, {name: b, stream: broadcast}]",
         "b: expected a filter to broadcast to (to: a), found none"),
        ("[{name: 'a b'}]", "filters"),
        ("[{name: a, data_nodes: 0}]", "data_nodes"),
    ],
)  # fmt: skip
def test_stages_that_are_cyclic_or_missing(read, tmp_path, filters, said):
    with pytest.raises(UserError) as error:
        read(f"program: p\nfilters: {filters}")
    assert str(error.value).startswith(str(tmp_path / "id3.yaml")) and said in str(error.value)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ("command: ['{size}']", "command: there is no parameter 'size'"),
        ("parameters: {a: []}", "parameters: a: expected different values, found []"),
        ("parameters: {a: [1, 1]}", "parameters: a: expected different values, found [1, 1]"),
        ("parameters: {'a b': [1]}", "parameters: expected a name of letters and digits, found 'a b'"),
        ("filers: []", "filers"),
    ],
)
def test_what_else_is_wrong_with_a_pipeline(read, more, said):
    with pytest.raises(UserError) as error:
        read(f"program: p\nfilters: [{{name: a}}]\n{more}")
    assert said in str(error.value)


# ---------------------------------------------------------------------- profiles


@pytest.fixture
def store(read, tmp_path):
    return Store(tmp_path / "profiles.json", read(ID3))


def test_a_store_begins_empty_and_keeps_what_is_added(store):
    assert store.profiles == [] and len(store.missing()) == 4
    first = Profile({"minimum": 0.5, "mode": "fast"}, (10, 20, 30), (1, 2, 3), 4.5)
    store.add(first)
    again = Store(store.path, store.pipeline)
    assert again.profiles == [first] and again.find(first.parameters) == first
    assert len(again.missing()) == 3
    second = Profile(first.parameters, (1, 1, 1), (1, 1, 1), 2.0)
    again.add(second)
    assert Store(store.path, store.pipeline).profiles == [second]


def test_other_programs_share_the_file(store):
    other = {
        "program": "other",
        "parameters": {"x": 1},
        "filters": {"f": {"bytes": 1, "seconds": 1}},
        "wall": 1,
    }
    store.path.write_text(json.dumps({"headway_profiles": 1, "profiles": [other]}), encoding="utf-8")
    store.add(Profile({"minimum": 0.5, "mode": "fast"}, (1, 1, 1), (1, 1, 1), 1))
    kept = json.loads(store.path.read_text(encoding="utf-8"))["profiles"]
    assert [one["program"] for one in kept] == ["other", "id3"] and kept[0] == other


def entry(**changes):
    filters = {name: {"bytes": 1, "seconds": 1} for name in ("read", "count", "decide")}
    return {"program": "id3", "parameters": {"minimum": 0.5, "mode": "fast"}, "filters": filters, **changes}


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"filters": {"read": {"bytes": 1, "seconds": 1}}},
         "profile 1: the profile has nothing of count, decide"),
        ({"filters": {**entry()["filters"], "more": {}}},
         "profile 1: more: no filter of id3 (read, count, decide)"),
        ({"filters": {**entry()["filters"], "read": {"bytes": -1, "seconds": 1}}},
         "profile 1: read: bytes: expected a number of at least 0, found -1"),
        ({"filters": {**entry()["filters"], "read": {"bytes": 1}}},
         "profile 1: read: seconds: expected a number of at least 0, found None"),
        ({"filters": []}, 'profile 1: expected {"filters": {...}}, found '),
        ({"wall": "long"}, "profile 1: wall: expected a number of at least 0, found 'long'"),
        ({"parameters": {"minimum": 0.5}},
         "profile 1: expected a value for the parameter 'mode', found none"),
        ({"parameters": {"minimum": 0.5, "mode": "fast", "mod": 1}}, "profile 1: id3 has no parameter 'mod'"),
    ],
)  # fmt: skip
def test_profiles_that_do_not_fit_the_pipeline(store, wrong, said):
    text = json.dumps({"headway_profiles": 1, "profiles": [entry(**wrong)]})
    store.path.write_text(text, encoding="utf-8")
    with pytest.raises(UserError) as error:
        Store(store.path, store.pipeline)
    assert said in str(error.value)


@pytest.mark.parametrize("text", ["", "[]", '{"profiles": []}', '{"headway_profiles": 1, "profiles": [1]}'])
def test_files_that_are_no_store(store, text):
    store.path.write_text(text, encoding="utf-8")
    with pytest.raises(UserError, match="store of profiles"):
        Store(store.path, store.pipeline)


def test_a_run_that_nobody_timed_took_as_long_as_its_filters(store):
    store.path.write_text(json.dumps({"headway_profiles": 1, "profiles": [entry()]}), encoding="utf-8")
    assert Store(store.path, store.pipeline).profiles[0].wall == 3
