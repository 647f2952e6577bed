"""What a plugin says of itself beside its hooks: its traits, and the attributes of 0.1 that say the same."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import pytest
from building import plugged

from headway.decisions import Migrate, PowerUp
from headway.errors import UserError
from headway.events import JobSubmitted
from headway.hookspecs import hookimpl
from headway.model import ClusterDescription
from headway.plugins import Again, Catalogue, Plugins, Study, Traits, traits_of
from headway.plugins.hook_names import hooks_of
from headway.plugins.old_names import REPLACED, old_names
from headway.state import Barrier, State

ROOT = Path(__file__).parents[2]
#: Hooks of plugins that are asked again for every event unless they say when.
ASKED = {"order_queue", "prepare", "schedule", "place"}


def test_a_plugin_without_a_record_has_the_safe_and_slow_defaults():
    class Bare:
        @hookimpl
        def schedule(self, view):
            return []

    assert traits_of(Bare()) == traits_of(Bare) == Traits()
    assert Traits().ask_again is Again.ANY_EVENT


def test_the_record_has_at_most_twelve_fields():
    assert len(dataclasses.fields(Traits)) <= 12


def test_an_instance_may_have_other_traits_than_its_class():
    class Chosen:
        traits = Traits(ask_again=Again.DOMAIN)

        def __init__(self):
            self.traits = dataclasses.replace(self.traits, words=frozenset({"image"}))

    assert traits_of(Chosen()).words == {"image"} and not traits_of(Chosen).words


@pytest.mark.parametrize(
    ("field", "value", "expected"),
    [
        ("needs", (JobSubmitted,), "a tuple of Decision types"),
        ("needs", ("Start",), "a tuple of Decision types"),
        ("gives", int, "a tuple of Decision types"),
        ("uses", None, "a tuple of Decision types"),
        ("observes", ("JobEnded",), "a tuple of Event types"),
        ("requires", "nodes", r"a set of texts such as \{'nodes'\}, found 'nodes'"),
        ("requires", {"gold"}, "of nodes, energy, lending, policy, found 'gold'"),
        ("words", "image", "a set of texts"),
        ("ask_again", "domain", "one of Again.ANY_EVENT, Again.DOMAIN, Again.ROOM, found 'domain'"),
        ("checkpoint", "promise", "one of state, promises, counts, found 'promise'"),
        ("same_answer", "user", "a function of a job"),
        ("changes_at", 5.0, "a function of a job"),
        ("study", "backfills", "a headway.plugins.Study"),
        ("paper", 3, "a text"),
    ],
)
def test_a_value_that_a_field_cannot_have_is_refused_where_it_is_written(field, value, expected):
    with pytest.raises(UserError, match=f"trait `{field}`: expected {expected}"):
        Traits(**{field: value})


@pytest.mark.parametrize(
    ("kind", "field", "meant"), [(Traits, "ask_agian", "ask_again"), (Study, "level", "levels")]
)
def test_a_misspelt_field_is_refused_with_the_field_that_is_meant(kind, field, meant):
    said = f"{kind.__name__}: no field is called '{field}'. Did you mean '{meant}'?"
    with pytest.raises(UserError, match=re.escape(said)):
        kind(**{field: None})


OWN_FILE = """
from headway.hookspecs import hookimpl
from headway.plugins import Traits

class Own:
    {traits}

    @hookimpl
    def {hook}(self, job):
        return None
"""


@pytest.mark.parametrize(
    ("traits", "hook", "said"),
    [
        ("traits = {'needs': ()}", "queue_key", ": plugin class Own: expected a headway.plugins.Traits"),
        ("traits = Traits(word=set())", "queue_key", ", line 6: Traits: no field is called 'word'. Did you"),
        ("traits = Traits(words='image')", "queue_key", ", line 6: trait `words`: expected a set of texts"),
        ("pass", "why_waiting", ": class 'Own' implements 'why_waiting', which is the hook 'explain' now"),
    ],
)
def test_a_message_about_a_plugin_of_a_file_names_the_file(traits, hook, said, tmp_path):
    path = tmp_path / "own.py"
    path.write_text(OWN_FILE.format(traits=traits, hook=hook))
    with pytest.raises(UserError, match=re.escape(f"--plugin {path}{said}")):
        Catalogue([path])


@pytest.mark.parametrize(
    ("traits", "said"),
    [
        ("traits = Traits(checkpoint='promises')", "its checkpoint holds promises"),
        ("def __init__(self): self.traits = Traits(need=())", "Traits: no field is called 'need'"),
    ],
)
def test_so_does_a_message_when_the_plugin_is_made(traits, said, tmp_path):
    path = tmp_path / "own.py"
    path.write_text(OWN_FILE.format(traits=traits, hook="queue_key"))
    catalogue = Catalogue([path])
    with pytest.raises(UserError, match=re.escape(f"--plugin {path}: plugin 'own': {said}")):
        Plugins.load(catalogue.enabled([]), catalogue, None)


@pytest.mark.parametrize("found", ["fast", {"needs": ()}, Traits])
def test_traits_that_are_no_record_are_refused(found):
    class Wrong:
        traits = found

    with pytest.raises(UserError, match=r"class Wrong: expected a headway\.plugins\.Traits as `traits`"):
        plugged(Wrong())


def test_a_checkpoint_of_promises_needs_a_count_of_them():
    class Careless:
        traits = Traits(checkpoint="promises")

    with pytest.raises(UserError, match="expected the hook `promised`"):
        plugged(Careless())


def test_only_what_is_looked_at_can_be_woken():
    state = State(ClusterDescription.flat(1))
    with pytest.raises(TypeError, match=r"expected a pool \(state.pools\[NAME\]\), a domain or a job"):
        state.wake_at(5.0, "pool")


def test_only_one_file_reads_attributes_of_plugins_by_name():
    """What a plugin says today is read in ``contract.py``, what it said in 0.1 in ``old_names.py``."""
    named = re.compile(r"(?:get|has)attr\([^()]*, \"(" + "|".join(["traits", *REPLACED]) + ')"')
    framework = ROOT / "framework" / "headway"
    found = {
        path.relative_to(framework).as_posix(): names
        for path in framework.rglob("*.py")
        if (names := named.findall(path.read_text(encoding="utf-8")))
    }
    assert set(found) == {"plugins/contract.py", "plugins/old_names.py"}
    assert found["plugins/contract.py"] == ["traits"]


def test_a_shipped_plugin_that_is_asked_after_any_event_needs_it():
    """The safe default costs time."""
    slow = {
        name
        for name, kind in Catalogue().loadable().items()
        if ASKED & set(hooks_of(kind)) and traits_of(kind).ask_again is Again.ANY_EVENT
    }
    assert slow == {"consolidation", "hybrid-los", "minmin", "moldable", "ns-edf", "sareg", "sufferage"}


# ---------------------------------------------------------------- the attributes of 0.1


class Old:
    """A plugin of 0.1."""

    gives = (Migrate,)
    wakes = True
    needs_energy = True
    backfills = True
    promises = True
    paper = "A. Nobody, 2005"

    def __init__(self):
        self.promised = 3
        self.observes = (JobSubmitted,)
        self.job_words = ("image",)

    def bar_kind(self, job):
        return job.user

    def bar_jobs(self, jobs, state):
        return [Barrier("no") for _ in jobs]

    @hookimpl
    def bar_job(self, job):
        return Barrier("no")

    def why_waiting(self, job, view):
        return f"{job} waits"


def test_attributes_of_a_plugin_of_0_1_are_traits():
    plugin = Old()
    traits = traits_of(plugin)
    kind = traits.same_answer
    assert kind == plugin.bar_kind
    assert dataclasses.replace(traits, same_answer=None) == Traits(
        uses=(PowerUp,),
        gives=(Migrate,),
        requires=frozenset({"energy"}),
        words=frozenset({"image"}),
        observes=(JobSubmitted,),
        ask_again=Again.DOMAIN,
        checkpoint="promises",
        study=Study(backfills=True),
        paper="A. Nobody, 2005",
    )


def test_methods_of_a_plugin_of_0_1_serve_the_hooks_of_today():
    with pytest.warns(FutureWarning) as warned:
        plugins = plugged(Old())
    assert {one.filename for one in warned} == {__file__}
    told = [str(one.message) for one in warned]
    end = "an attribute of 0.1, ends with 0.3; what replaces it"
    assert f"plugins: plugin 'old': `wakes`, {end}: trait uses=(PowerUp,)" in told
    assert f"plugins: plugin 'old': `why_waiting`, {end}: hook explain" in told
    found = {
        hook: function
        for hook in ("promised", "bar_jobs", "explain")
        for _, function in plugins.implementations(hook)
    }
    assert found["promised"]() == 3
    assert [barrier.why for barrier in found["bar_jobs"](["a", "b"], None)] == ["no", "no"]
    assert found["explain"]("a", "waiting", None, str) == "a waits"
    assert found["explain"]("a", "suspension", None, str) is None


class Half:
    """A plugin of 0.1 that got a record."""

    traits = Traits()
    needs = (Migrate,)

    def __init__(self):
        self.levels = 2

    def why_waiting(self, job, view):
        return f"{job} waits"


def test_attributes_of_0_1_beside_a_record_are_warned_of_too():
    with pytest.warns(FutureWarning) as warned:
        plugins = plugged(Half())
    assert [str(one.message) for one in warned] == [
        "plugins: plugin 'half': `needs`, an attribute of 0.1, has no effect beside `traits`; what replaces "
        "it: trait needs",
        "plugins: plugin 'half': `why_waiting`, an attribute of 0.1, ends with 0.3; what replaces it: hook "
        "explain",
    ]
    ((_, explain),) = plugins.implementations("explain")
    assert explain("a", "waiting", None, str) == "a waits"


def test_a_plugin_with_the_hook_explain_may_call_a_method_as_in_0_1():
    class Explains(Half):
        @hookimpl
        def explain(self):
            return self.why_waiting("a", None)

    assert old_names(Explains()) == ["needs"]


def test_every_attribute_of_0_1_names_what_replaces_it():
    fields = {field.name for field in dataclasses.fields(Traits)}
    for replaced in REPLACED.values():
        if found := re.match(r"trait (\w+)", replaced):
            assert found[1] in fields
