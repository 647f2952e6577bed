"""Plugins: found by name or file, configured with checked options, asked in order."""

from __future__ import annotations

import pydantic
import pytest
from building import plugged

from headway.decisions import Start, Suspend, Tell
from headway.errors import UserError
from headway.hookspecs import Plugin, hookimpl
from headway.plugins import Catalogue, HookCaller, PluginConfig, Plugins, Traits
from headway.plugins.hook_names import hooks_of


def load(*configs, catalogue=None, capabilities=None) -> Plugins:
    return Plugins.load(configs, catalogue or Catalogue(), capabilities)


def config(name, options=None, where="site.yaml: plugins[0]") -> PluginConfig:
    return PluginConfig(name, options or {}, where)


@pytest.fixture
def write(tmp_path):
    def write(text, name="mine.py"):
        path = tmp_path / name
        path.write_text(text)
        return path

    return write


# ---------------------------------------------------------------- found


def test_what_is_shipped_is_installed_like_any_other_plugin():
    assert {"fcfs", "easy", "conservative", "first-fit", "best-fit"} <= set(Catalogue().names())


def test_an_unknown_plugin_is_refused_with_its_place_and_the_nearest_names():
    with pytest.raises(UserError) as error:
        load(config("esay"))
    assert str(error.value).startswith(
        "site.yaml: plugins[0]: no plugin is called 'esay'. Did you mean 'easy'"
    )


def test_a_name_near_nothing_says_where_the_list_is_and_how_a_file_is_given():
    with pytest.raises(UserError) as error:
        load(config("xyzzy"))
    assert str(error.value) == (
        "site.yaml: plugins[0]: no plugin is called 'xyzzy'. `headway plugins` lists all. If its class is in "
        "a file, give that file: --plugin FILE.py"
    )


def test_a_plugin_tells_about_itself():
    info = Catalogue().info("easy")
    assert info.hooks == ("schedule", "explain")
    assert "EASY" in info.summary
    assert "Lifka" in info.documentation
    assert info.source == "headway_plugins.policies.easy:Easy"


# ---------------------------------------------------------------- files

ONE = """
from headway.hookspecs import hookimpl

class ShortestFirst:
    "Serve the shortest first."

    @hookimpl
    def queue_key(self, job):
        return (job.estimate,)
"""


def test_a_file_with_one_plugin_is_called_after_the_file(write):
    catalogue = Catalogue([write(ONE)])
    assert catalogue.from_files == ["mine"]
    assert list(hooks_of(catalogue.get("mine"))) == ["queue_key"]


def test_a_plugin_of_a_file_may_name_itself(write):
    path = write(ONE.replace('"Serve', 'name = "sjf"\n    "Serve'))
    assert Catalogue([path]).from_files == ["sjf"]


def test_only_classes_of_the_file_itself_count(write):
    path = write("from headway_plugins.policies.easy import Easy\n" + ONE)
    assert Catalogue([path]).from_files == ["mine"]


def test_several_plugins_of_a_file_are_called_after_their_classes(write):
    path = write(ONE + ONE.replace("ShortestFirst", "Other"))
    assert sorted(Catalogue([path]).from_files) == ["other", "shortestfirst"]


ALONE = """
from headway.hookspecs import hookimpl

class Mine:
    %s
    def %s(self, %s):
        return []
"""


def test_a_class_beside_a_plugin_may_have_methods_with_names_of_hooks(write):
    assert Catalogue([write(ONE + ALONE % ("", "place", "tree"))]).from_files == ["mine"]


def test_a_hook_without_its_mark_beside_marked_hooks_is_told(write):
    path = write(ONE + "\n    def order_queue(self, jobs):\n        return jobs\n")
    told = "class 'ShortestFirst': its method 'order_queue' has the name of a hook .*@hookimpl is missing"
    with pytest.warns(UserWarning, match=told) as warned:
        Catalogue([path])
    assert [(one.filename, one.lineno) for one in warned] == [(str(path), 4)]


@pytest.mark.parametrize(
    ("line", "meant"),
    [("trait = Traits()", "traits"), ("option = Traits", "Options"), ("options = Traits", "Options")],
)
def test_traits_or_options_under_another_name_are_refused(write, line, meant):
    kind = ONE + f"    from headway.plugins import Traits\n    {line}\n"
    told = f"its attribute `{line.split()[0]}` has no effect. Did you mean `{meant}`"
    with pytest.raises(UserError, match=f"--plugin .*mine.py: class 'ShortestFirst': {told}"):
        Catalogue([write(kind)])
    made = type("Made", (Plugin,), {line.split()[0]: Traits()})()
    with pytest.raises(UserError, match=f"plugins: plugin 'made': {told}"):
        Plugins().add("made", made)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = (", "line 1: does not load: SyntaxError"),
        ("\n\n1 / 0\n", "line 3: does not load: ZeroDivisionError"),
        ("import no_such_module_anywhere\n", "line 1: does not load: ModuleNotFoundError"),
        ("class Nothing: pass\n", "expected a class with hooks"),
        ("", "expected a class with hooks"),
        (
            ALONE % ("@hookimpl", "shedule", "view"),
            "'Mine' implements 'shedule', which is no hook. Did you mean 'schedule'",
        ),
        (ONE + ALONE % ("@hookimpl", "shedule", "view"), "'Mine' implements 'shedule'"),
        (
            ALONE % ("@hookimpl", "schedule", "veiw"),
            "hook 'schedule' has no argument 'veiw'. Did you mean 'view'?",
        ),
        (ALONE % ("", "schedule", "view"), "found Mine.schedule without @hookimpl"),
    ],
)
def test_a_broken_file_is_refused_with_the_line(write, text, message):
    path = write(text)
    with pytest.raises(UserError) as error:
        Catalogue([path])
    assert str(path) in str(error.value) and message in str(error.value)


def test_a_missing_file_is_refused(tmp_path):
    with pytest.raises(UserError, match="found no such file"):
        Catalogue([tmp_path / "missing.py"])
    with pytest.raises(UserError, match="found no such file"):
        Catalogue([tmp_path])


def test_a_file_that_is_no_python_is_refused(write):
    with pytest.raises(UserError, match=r"ending \.py"):
        Catalogue([write(ONE, "mine.txt")])


# ---------------------------------------------------------------- options


class Bounds(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="forbid")

    depth: int = pydantic.Field(default=10, ge=1)
    factor: float = 1.0


class Tuned(Plugin):
    Options = Bounds

    @hookimpl
    def schedule(self, view):
        return None


class Plain:
    @hookimpl
    def schedule(self, view):
        return None


@pytest.fixture
def own(monkeypatch):
    catalogue = Catalogue()
    catalogue._classes.update(tuned=Tuned, plain=Plain)
    return catalogue


def test_options_are_made_from_the_configuration(own):
    assert load(config("tuned", {"depth": 3}), catalogue=own).by_name["tuned"].options.depth == 3
    assert load(config("tuned"), catalogue=own).by_name["tuned"].options.depth == 10


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dept": 3}, "site.yaml: plugins[0]: tuned: dept: unknown key. Did you mean 'depth'?"),
        ({"depth": "many"}, "tuned: depth: expected"),
        ({"depth": "many"}, "found 'many'"),
        ({"depth": 0}, "tuned: depth: expected greater than or equal to 1, found 0"),
        ({"depth": 0, "factor": "x"}, "tuned: factor: expected"),
    ],
)
def test_a_wrong_option_names_place_key_expected_and_found(own, options, message):
    with pytest.raises(UserError) as error:
        load(config("tuned", options), catalogue=own)
    assert message in str(error.value)


def test_options_for_a_plugin_without_any_are_refused(own):
    with pytest.raises(UserError, match="has no options"):
        load(config("plain", {"depth": 3}), catalogue=own)


def test_an_unknown_option_is_refused_even_where_the_model_would_ignore_it(own):
    class Lax(pydantic.BaseModel):
        depth: int = 1

    own._classes["lax"] = type("LaxPlugin", (Tuned,), {"Options": Lax})
    with pytest.raises(UserError, match=r"lax: dept: unknown key\. Did you mean 'depth'\?"):
        load(config("lax", {"dept": 3}), catalogue=own)


def test_a_plugin_that_cannot_be_made_is_refused_with_its_name(own):
    class Broken(Plain):
        def __init__(self):
            raise RuntimeError("no database")

    own._classes["broken"] = Broken
    with pytest.raises(UserError, match=r"site\.yaml: plugins\[0\]: plugin 'broken' .*no database"):
        load(config("broken"), catalogue=own)


# ---------------------------------------------------------------- enabled


def test_the_same_plugin_twice_is_refused(own):
    with pytest.raises(UserError, match="enabled twice"):
        load(config("plain"), config("plain"), catalogue=own)


def test_what_the_cluster_cannot_carry_out_is_refused_with_both_names(own):
    own._classes["pauser"] = type("Pauser", (Plain,), {"needs": (Start, Suspend)})
    with pytest.raises(UserError) as error:
        load(config("pauser"), catalogue=own, capabilities=frozenset({Start}))
    assert "'pauser' needs Suspend" in str(error.value)
    assert "it can: Start" in str(error.value)
    load(config("pauser"), catalogue=own, capabilities=frozenset({Start, Suspend}))
    load(config("pauser"), catalogue=own, capabilities=None)


def test_what_the_engine_carries_out_is_there_on_every_cluster(own):
    own._classes["writer"] = type("Writer", (Plain,), {"traits": Traits(needs=(Tell,))})
    load(config("writer"), catalogue=own, capabilities=frozenset())


def test_a_misspelt_hook_is_refused_with_the_nearest():
    class Misspelt:
        @hookimpl
        def shedule(self, view):
            return []

    with pytest.raises(UserError, match=r"'shedule', which is no hook.*'schedule'"):
        plugged(Misspelt())


def test_an_argument_that_the_hook_does_not_have_is_refused():
    class Wants:
        @hookimpl
        def schedule(self, weather):
            return []

    with pytest.raises(UserError, match="weather"):
        plugged(Wants())


# ---------------------------------------------------------------- asked


def named(name, answer, seen):
    class Named:
        @hookimpl
        def veto(self, decision):
            seen.append(name)
            return answer

    Named.__name__ = name
    return Named()


def test_plugins_are_asked_in_configured_order_until_one_answers():
    seen: list[str] = []
    plugins = plugged(named("a", None, seen), named("b", "no", seen), named("c", "never", seen))
    caller = HookCaller(plugins, "veto", [], {})
    assert caller.first(Start("j"), None) == "no"
    assert seen == ["a", "b"]


def test_all_answers_come_with_the_names_of_their_plugins():
    seen: list[str] = []
    plugins = plugged(named("a", "x", seen), named("b", None, seen), named("c", "y", seen))
    assert HookCaller(plugins, "veto", [], {}).all(Start("j"), None) == [("a", "x"), ("c", "y")]


def test_a_plugin_takes_only_the_arguments_that_it_names():
    class Swapped:
        @hookimpl
        def admit_job(self, state):
            return f"state is {state}"

    assert HookCaller(plugged(Swapped()), "admit_job", [], {}).first("job", "fine") == "state is fine"


def test_a_plugin_that_raises_is_passed_over_and_noted():
    class Raises:
        @hookimpl
        def veto(self):
            raise KeyError("x")

    problems, seconds = [], {}
    caller = HookCaller(plugged(Raises(), named("b", "no", [])), "veto", problems, seconds)
    assert caller.first(Start("j"), None) == "no"
    assert [(p.plugin, p.hook, p.message) for p in problems] == [("raises", "veto", "KeyError: 'x'")]
    assert "Traceback" in problems[0].traceback


def test_time_is_counted_for_each_plugin_even_if_it_raises():
    class Raises:
        @hookimpl
        def veto(self):
            raise KeyError("x")

    seconds: dict[str, float] = {}
    HookCaller(plugged(Raises()), "veto", [], seconds).first(Start("j"), None)
    assert seconds["raises"] > 0
