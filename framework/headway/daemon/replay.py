"""A recorded run again: the same events to a new scheduler, its decisions against the recorded ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from headway.config import INSTALLED, Adapters, Config, emulated_adapter, parse_config
from headway.decisions import Decision
from headway.errors import UserError
from headway.events import JobSubmitted, SitePolicyChanged
from headway.inputs import SAVED_AS, InputFiles
from headway.journal import Journal, RunRecord
from headway.model.modes import Mode
from headway.model.nodes import sharing_nodes
from headway.plugins import Catalogue, Plugins, traits_of
from headway.plugins.enabled import FROM_FILES
from headway.plugins.hook_names import hooks_of
from headway.scheduler import Scheduler

#: Fields of decisions that are written for a person.
_WORDS = frozenset({"reason", "subject", "text"})

#: From this version on pools that share nodes are one, and a decision counts at once whichever hook makes it.
_ONE_DOMAIN = _ONE_GATE = (0, 2)


@dataclass(frozen=True)
class Difference:
    """A cycle whose decisions came out otherwise."""

    seq: int
    now: float
    recorded: tuple[Decision, ...]
    repeated: tuple[Decision, ...]


@dataclass
class Replay:
    """What a replay found."""

    run: RunRecord
    cycles: int = 0
    events: int = 0
    decisions: int = 0
    differences: list[Difference] = field(default_factory=list)
    #: The last recorded cycle has no decisions in the journal because the daemon was killed in it.
    cut_short: bool = False


def scheduler_of(
    run: RunRecord, catalogue: Catalogue, adapters: Adapters = INSTALLED, *, counting_on: bool = False
) -> Scheduler:
    """A scheduler as it was when ``run`` began. ``counting_on``: its plugins' states were saved later, and
    are shown the events since. ``adapters``: which its configuration can name.

    Raises :class:`UserError` for a run that another rule decided than that of today.
    """
    _by_todays_rule(run)
    config = config_of(run, adapters)
    cluster = run.info.cluster
    files = InputFiles(run.info.plugin_states.get(SAVED_AS))
    emulated = emulated_adapter(cluster).capable_of(cluster) if run.info.mode == Mode.DRY_RUN else None
    configs = catalogue.enabled(config.plugin_configs())
    able = emulated if emulated is not None else config.capabilities(cluster, catalogue.gives(configs))
    return Scheduler(
        cluster,
        Plugins.load(configs, catalogue, None, files),
        seed=run.info.seed,
        capabilities=able,
        saved=run.info.plugin_states,
        counting_on=counting_on,
        monitor=run.info.mode == Mode.MONITOR,
        cycle=config.cycle,
        wait_for_down_nodes=config.wait_for_down_nodes,
        tiers=config.tiers,
        # A dry run begins at its trace's epoch; a live one has the epoch's own clock.
        epoch=run.info.started_at if run.info.mode == Mode.DRY_RUN else 0.0,
    )


def repeating(run: RunRecord, catalogue: Catalogue, adapters: Adapters = INSTALLED) -> Scheduler:
    """The scheduler with which the whole of ``run`` can be repeated, decision by decision.

    Raises :class:`UserError` as :func:`scheduler_of` does, and where a plugin of the run came from a file
    that ``catalogue`` does not have: without it others would decide.
    """
    given = catalogue.files()
    files: dict[str, str] = run.info.plugin_states.get(FROM_FILES) or {}
    missing = {name: file for name, file in files.items() if name not in given}
    if missing:
        names = ", ".join(repr(name) for name in missing)
        options = " ".join(f"--plugin {file}" for file in dict.fromkeys(missing.values()))
        raise UserError(
            f"journal, run {run.id}: expected the plugins of files that the run had ({names}), found none of "
            f"that name; give each file again: {options}"
        )
    return scheduler_of(run, catalogue, adapters)


def config_of(run: RunRecord, adapters: Adapters = INSTALLED) -> Config:
    """The configuration of a recorded run, which can name ``adapters``."""
    return parse_config(run.info.config_text, f"journal, run {run.id}", adapters)


def learned(
    journal: Journal, run: RunRecord, catalogue: Catalogue, adapters: Adapters = INSTALLED
) -> dict[str, Any]:
    """What the plugins know at the end of what is recorded of ``run``, by name: what its last checkpoint
    kept, and what observing plugins make of the events since.

    Of the jobs that came before that checkpoint, the state that they are shown knows nothing.
    """
    kept = journal.last_checkpoint(run.id)
    if kept is not None:
        states = {**run.info.plugin_states, **kept.states}
        run = replace(run, info=replace(run.info, plugin_states=states))
    scheduler = scheduler_of(run, catalogue, adapters)
    for cycle in journal.cycles(run.id, None if kept is None else kept.seq):
        scheduler.follow(cycle.now, cycle.events)
    return scheduler.checkpoint()


def learned_by_predictors(
    journal: Journal, run: RunRecord, catalogue: Catalogue, adapters: Adapters = INSTALLED
) -> dict[str, Any]:
    """The same of the plugins that predict runtimes alone: they go by events, not by decisions. What these
    know that promise something, too, is in the checkpoint, which may be later than that of the others."""
    return {
        name: state
        for name, state in learned(journal, run, catalogue, adapters).items()
        if name in catalogue.names()
        and "predict_runtime" in hooks_of(catalogue.get(name))
        and traits_of(catalogue.get(name)).checkpoint != "promises"
    }


def recounted(
    journal: Journal, run: RunRecord, catalogue: Catalogue, adapters: Adapters = INSTALLED
) -> dict[str, Any]:
    """What the plugins whose checkpoint holds counts have counted by the end of what is recorded of ``run``,
    by name: what its last checkpoint kept, and all events since.

    They are shown the events as they were shown them then, beside a state that knows the jobs that these are
    about, so the sums are as they were then.
    """
    names = [
        one.name for one in catalogue.enabled(config_of(run, adapters).plugin_configs())
        if traits_of(catalogue.get(one.name)).checkpoint == "counts"
    ]  # fmt: skip
    if not names:
        return {}
    kept = journal.last_checkpoint(run.id)
    if kept is not None:
        states = {**run.info.plugin_states, **kept.states}
        run = replace(run, info=replace(run.info, plugin_states=states))
    scheduler = scheduler_of(run, catalogue, adapters, counting_on=kept is not None)
    if kept is not None:
        for event in journal.before(run.id, kept.seq):
            scheduler.follow(event.time, [event], names if isinstance(event, SitePolicyChanged) else ())
        there = [JobSubmitted(job.submit_time, job.description) for job in scheduler.state.jobs.values()]
        scheduler.remind(there, names)
    for cycle in journal.cycles(run.id, None if kept is None else kept.seq):
        scheduler.follow(cycle.now, cycle.events, names)
    return {name: state for name, state in scheduler.checkpoint(names).items() if state is not None}


def promised(journal: Journal, run: RunRecord, catalogue: Catalogue) -> dict[str, Any]:
    """What plugins have promised to jobs, by name: it was written down whenever it changed."""
    kept = journal.last_checkpoint(run.id)
    states = run.info.plugin_states if kept is None else kept.states
    return {
        name: state
        for name, state in states.items()
        if name in catalogue.names() and traits_of(catalogue.get(name)).checkpoint == "promises"
    }


def _by_todays_rule(run: RunRecord) -> None:
    cluster = run.info.cluster
    if _numbers(run.info.version) >= _ONE_DOMAIN:
        return
    pools = [pool.name for pool in cluster.pools]
    for names in sharing_nodes(pools, (node.pools for node in cluster.nodes)):
        if len(names) > 1:
            raise UserError(
                f"run {run.id} was recorded by headway {run.info.version}, which served the pools "
                f"{', '.join(names)} separately although they share nodes; since 0.2 they are served "
                "together, so the run cannot be repeated"
            )


def other_rule(run: RunRecord) -> str:
    """What may be why a recorded run comes out otherwise than it did; "": nothing that is known."""
    if _numbers(run.info.version) >= _ONE_GATE:
        return ""
    return (
        f"run {run.id} was recorded by headway {run.info.version}; since 0.2 limits, reservations and ends "
        "that a plugin decides in schedule, control or revise count at once, so a run with such a plugin may "
        "differ"
    )


def _numbers(version: str) -> tuple[int, ...]:
    """``0.2.1`` -> (0, 2, 1)."""
    return tuple(int(part) for part in version.split(".") if part.isdecimal())


def replay(
    journal: Journal,
    catalogue: Catalogue,
    run_id: int | None = None,
    on_cycle: Callable[[], None] | None = None,
    adapters: Adapters = INSTALLED,
) -> Replay:
    """Repeat a run (default: the last) and compare every decision.

    What is written for a person (reasons, letters) is left out: times in it are of the machine's zone.
    """
    runs = journal.runs()
    chosen = [run for run in runs if run_id is None or run.id == run_id]
    if not chosen:
        if not runs:
            raise UserError(f"{journal.name}: expected a recorded run, found none")
        have = ", ".join(str(run.id) for run in runs)
        raise UserError(f"{journal.name}: expected one of the runs {have}, found run {run_id} asked for")
    result = Replay(chosen[-1])
    scheduler = repeating(result.run, catalogue, adapters)
    ended = result.run.ended_at is not None
    last = None
    for cycle in journal.cycles(result.run.id):
        made = scheduler.step(cycle.now, cycle.events)
        result.cycles += 1
        result.events += len(cycle.events)
        result.decisions += len(cycle.decisions)
        last = None
        if not _same(made, cycle.decisions):
            last = Difference(cycle.seq, cycle.now, cycle.decisions, tuple(made))
            result.differences.append(last)
        if on_cycle is not None:
            on_cycle()
    if last is not None and not ended and not last.recorded:
        result.differences.pop()
        result.cut_short = True
    return result


def _same(made: list[Decision], recorded: tuple[Decision, ...]) -> bool:
    return len(made) == len(recorded) and all(
        _without_words(a) == _without_words(b) for a, b in zip(made, recorded, strict=True)
    )


def _without_words(decision: Decision) -> tuple[object, ...]:
    return (
        type(decision),
        *(getattr(decision, name) for name in decision.__struct_fields__ if name not in _WORDS),
    )
