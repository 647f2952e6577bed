"""The tables of docs/architecture name what there is: every event, decision, hook and table."""

from __future__ import annotations

import re
from importlib.metadata import entry_points
from itertools import groupby
from pathlib import Path
from typing import Any, get_args

import pytest

from headway.decisions import DECISION_TYPES
from headway.engine import CHECKPOINT_CYCLES, Engine, Stopped
from headway.errors import Damaged, Failure, Superseded, UserError
from headway.events import OUTCOMES, AnyEvent, JobEnded, JobSubmitted
from headway.hookspecs import HookSpecs, hookimpl
from headway.inquiry.waiting import CAUSES
from headway.journal.schema import metadata
from headway.model import ClusterDescription, JobDescription, Request
from headway.model.modes import Mode
from headway.plugins import Catalogue, PluginConfig, Plugins
from headway.scheduler import Scheduler
from headway.service import protocol
from headway.state import Status

ROOT = Path(__file__).parents[2]
#: The text of each page by its name.
PAGES = {
    page.name: page.read_text(encoding="utf-8") for page in (ROOT / "docs" / "architecture").glob("*.md")
}
EVENTS = {kind.__name__: kind for kind in get_args(AnyEvent)}
ADAPTERS = {entry.name: entry.load() for entry in entry_points(group="headway.adapters")}


def section(page: str, title: str) -> str:
    return re.split(rf"^#+ {re.escape(title)}$", PAGES[page], flags=re.MULTILINE)[1].split("\n## ")[0]


def table(page: str, title: str) -> list[list[str]]:
    """The cells of the rows of a section's first table."""
    rows = re.findall(r"^\| *(.*?) *\|$", section(page, title), re.MULTILINE)
    return [re.split(r" *\| *", row) for row in rows[2:]]


def names(cell: str) -> list[str]:
    return re.findall(r"`(\w+)`", cell)


@pytest.mark.parametrize(
    ("page", "title", "kinds"),
    [("events.md", "Events", EVENTS), ("decisions.md", "Decisions", DECISION_TYPES)],
)
def test_a_table_names_every_class_with_its_fields_in_order(page, title, kinds):
    written = {names(row[0])[0]: tuple(names(row[1])) for row in table(page, title)}
    assert written == {name: kind.__struct_fields__ for name, kind in kinds.items()}


def test_the_table_of_questions_names_each_with_what_it_finds():
    asked = [kind.__name__.lower() for kind in get_args(protocol.Question)]
    assert [name for row in table("requests.md", "Questions") for name in names(row[0])] == asked


def test_the_table_of_causes_names_each_in_its_order():
    told = [row[0].strip("`") for row in table("requests.md", "Why a job waits in its queue")]
    assert told == [cause.kind for cause in CAUSES]


def test_the_table_of_events_says_each_phase():
    assert {names(row[0])[0]: int(row[2]) for row in table("events.md", "Events")} == {
        n: k.phase for n, k in EVENTS.items()
    }


def test_the_table_of_events_says_who_produces_which():
    adapters = ROOT / "adapters" / "headway_adapters"
    names_of_shared = (
        "differ.py", "loop.py", "orders.py", "flights.py", "wishes.py", "actuators.py", "moves.py",
        "agents.py", "routes.py",
    )  # fmt: skip
    shared = [adapters / "polling" / name for name in names_of_shared]
    files = {
        "E": (adapters / "emulated").glob("*.py"),
        "S": [*shared, *(adapters / "slurm").glob("*.py")],
        "P": [*shared, *(adapters / "pbs").glob("*.py")],
        "L": [*shared, *(adapters / "lsf").glob("*.py")],
    }
    source = {letter: "".join(path.read_text("utf-8") for path in paths) for letter, paths in files.items()}
    made = {
        name: [letter for letter, text in source.items() if re.search(rf"\b_?{name}\(", text)]
        for name in EVENTS
    }
    assert {names(row[0])[0]: row[3].split() for row in table("events.md", "Events")} == made


def test_the_table_of_decisions_says_who_carries_out_which():
    able = {
        name: [
            letter
            for letter, adapter in (("E", "emulated"), ("S", "slurm"), ("P", "pbs"), ("L", "lsf"))
            if kind in ADAPTERS[adapter].capabilities
        ]
        for name, kind in DECISION_TYPES.items()
    }
    assert {names(row[0])[0]: row[3].split() for row in table("decisions.md", "Decisions")} == able


def test_the_outcomes_of_a_job_are_named():
    (row,) = (row for row in table("events.md", "Events") if row[0] == "`JobEnded`")
    assert all(outcome in row[4] for outcome in OUTCOMES)


def test_the_cycle_names_every_hook():
    hooks = {name for name in vars(HookSpecs) if not name.startswith("_")}
    assert hooks <= set(names(PAGES["cycle.md"]))
    assert f"every {CHECKPOINT_CYCLES} cycles" in PAGES["cycle.md"]


def test_the_hooks_of_a_cycle_are_named_in_the_order_in_which_they_are_called():
    called: list[str] = []

    def recorder(hook: str) -> Any:
        arguments = HookSpecs.__dict__[hook].__code__.co_varnames[
            1 : HookSpecs.__dict__[hook].__code__.co_argcount
        ]
        answer = {"queue_key": "(1,)", "schedule": "[view.start(view.queue[0])]"}.get(hook, "None")
        namespace: dict[str, Any] = {"called": called}
        source = (
            f"def {hook}(self, {', '.join(arguments)}):\n    called.append({hook!r})\n    return {answer}"
        )
        exec(source, namespace)
        return hookimpl(namespace[hook])

    in_a_cycle = [hook for row in table("cycle.md", "A cycle, hook by hook") for hook in names(row[2])]
    plugins = Plugins()
    plugins.add(
        "recorder", type("Recorder", (), {hook: recorder(hook) for hook in in_a_cycle if hook != "place"})()
    )
    scheduler = Scheduler(ClusterDescription.flat(1), plugins)
    scheduler.step(0, [JobSubmitted(0, JobDescription("a", 0, Request(1, 10)))])
    # The view and the guard ask about a start, right after each other.
    assert [hook for hook, _ in groupby(called)] == [hook for hook in in_a_cycle if hook != "place"]


def test_the_layout_exists():
    text = section("README.md", "Layout and the import rule")
    layout = re.findall(r"^```\n(.*?)^```", text, re.MULTILINE | re.DOTALL)[0]
    folder = ROOT
    for line in layout.splitlines():
        found = re.findall(r"[\w/]+(?:\.py|/)(?= |$)", line.split("   the ")[0])
        if not line.startswith(" "):
            folder = ROOT / found.pop(0)
            assert folder.is_dir()
        for name in found:
            assert (folder / name).exists(), name


def test_the_table_of_the_journal_names_its_tables_and_columns():
    keys = {"run_id", "seq", "position", "plugin", "id"}
    written = {names(row[0])[0]: names(row[2]) for row in table("journal.md", "Tables")}
    # A checkpoint's cycle is no key of it.
    real = {
        t.name: [c.name for c in t.columns if c.name not in keys or (c.name == "seq" and not c.primary_key)]
        for t in metadata.tables.values()
    }
    assert written == real


def test_the_modes_and_exit_codes():
    modes = table("runs.md", "Modes")
    assert [names(row[0].replace("-", "_"))[0].replace("_", "-") for row in modes] == list(Mode)
    rows = table("runs.md", "Errors and exit codes")
    codes = {names(row[1])[0]: int(row[0]) for row in rows if names(row[1])}
    kinds = (Failure, UserError, Damaged, Superseded)
    assert codes == {kind.__name__: kind.exit_code for kind in kinds}


def test_the_adapter_of_the_page_is_scheduled():
    namespace: dict[str, Any] = {}
    exec(re.findall(r"^```python\n(.*?)^```", PAGES["adapters.md"], re.MULTILINE | re.DOTALL)[0], namespace)
    jobs = [JobDescription(name, 0, Request(6, 100)) for name in "ab"]
    cluster = ClusterDescription.flat(10)
    adapter = namespace["Rerun"](
        cluster, [(0, [JobSubmitted(0, job) for job in jobs]), (50, [JobEnded(50, "a")])]
    )
    catalogue = Catalogue()
    plugins = Plugins.load([PluginConfig("easy")], catalogue, adapter.capabilities)
    scheduler = Scheduler(adapter.describe(), plugins)
    decided = []
    engine = Engine(
        adapter,
        scheduler,
        on_decisions=lambda now, decisions, outcomes: decided.extend((now, d.job_id) for d in decisions),
    )
    assert engine.run() is Stopped.FINISHED
    assert decided == [(0, "a"), (50, "b")]
    assert [(job.id, job.status) for job in scheduler.state.jobs.values()] == [("b", Status.RUNNING)]
