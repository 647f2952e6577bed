"""The loop: what is written before what is done, and how it ends."""

from __future__ import annotations

import pytest
from building import described, plugged

from headway import events as ev
from headway.adapter import ClusterAdapter, Outcome
from headway.decisions import Start, Tell
from headway.engine import CHECKPOINT_CYCLES, Engine, Stopped
from headway.errors import Failure, UserError
from headway.hookspecs import hookimpl
from headway.model import ClusterDescription
from headway.model.modes import Mode
from headway.plugins import Traits
from headway.scheduler import Scheduler
from headway_plugins.policies.conservative import Conservative
from headway_plugins.policies.fcfs import Fcfs

CLUSTER = ClusterDescription.flat(8)


class Script(ClusterAdapter):
    """Tells what is written in a script; keeps what was applied, in a log shared with the journal."""

    def __init__(self, *moments, log=None):
        self.moments = list(moments)
        self.log = log if log is not None else []
        self.deadlines = []
        self.woken = 0

    def describe(self):
        return CLUSTER

    def wait(self, deadline):
        self.deadlines.append(deadline)
        if not self.moments:
            return None
        moment = self.moments.pop(0)
        return moment() if callable(moment) else moment

    def apply(self, now, decisions):
        self.log.append(("applied", [d.job_id for d in decisions]))
        return [Outcome(True, "fine")] * len(decisions)

    def wake(self):
        self.woken += 1


class Notebook:
    """A journal in a list; fails when told to."""

    enabled = True

    def __init__(self, log, fails=""):
        self.log = log
        self.fails = fails

    def _write(self, kind, *what):
        if kind == self.fails:
            raise Failure("disk full")
        self.log.append((kind, *what))

    def record_events(self, seq, now, events):
        self._write("events", seq, len(events))

    def record_decisions(self, seq, decisions):
        self._write("decisions", seq, [getattr(d, "job_id", None) for d in decisions])

    def record_outcomes(self, seq, outcomes):
        self._write("outcomes", seq, [o.accepted for o in outcomes])

    def checkpoint(self, seq, states, of=None):
        self._write("checkpoint", seq, states, *([of] if of is not None else []))


class Quiet:
    def __init__(self):
        self.errors = []

    def info(self, *args, **more): ...

    def error(self, what, **more):
        self.errors.append((what, more))


def arrival(now, *names):
    return now, [ev.JobSubmitted(now, described(name, 4, submit=now)) for name in names]


def engine(adapter, journal=None, *plugins, mode=Mode.DRIVE, policy=Fcfs, **more):
    scheduler = Scheduler(CLUSTER, plugged(policy(), *plugins), monitor=mode is Mode.MONITOR)
    return Engine(adapter, scheduler, journal, mode=mode, log=Quiet(), **more)


def test_events_then_decisions_are_written_before_anything_is_applied():
    log = []
    reason = engine(Script(arrival(0, "a", "b"), log=log), Notebook(log)).run()
    assert reason is Stopped.FINISHED
    assert log == [
        ("events", 1, 2),
        ("decisions", 1, ["a", "b"]),
        ("applied", ["a", "b"]),
        ("outcomes", 1, [True, True]),
        ("checkpoint", 1, {}),
    ]


@pytest.mark.parametrize("mode", [Mode.DRIVE, Mode.MONITOR])
def test_whether_it_may_act_is_asked_right_before_anything_is_applied(mode):
    log = []

    def may_act():
        log.append("asked")
        raise Failure("another daemon leads")

    made = engine(Script(arrival(0, "a"), log=log), Notebook(log), mode=mode, may_act=may_act)
    if mode is Mode.MONITOR:
        # Nothing is applied.
        made.run()
        assert "asked" not in log
        return
    with pytest.raises(Failure, match="another daemon leads"):
        made.run()
    assert log == [("events", 1, 1), ("decisions", 1, ["a"]), "asked"]


def test_a_cycle_without_decisions_writes_its_events_only():
    log = []
    engine(Script((0, []), (5, [ev.Tick(5)]), log=log), Notebook(log)).run()
    assert [entry[:2] for entry in log] == [("events", 1), ("events", 2), ("checkpoint", 2)]


@pytest.mark.parametrize("fails", ["events", "decisions"])
def test_a_journal_that_cannot_be_written_ends_the_loop_before_anything_is_applied(fails):
    log = []
    with pytest.raises(Failure, match="disk full"):
        engine(Script(arrival(0, "a"), log=log), Notebook(log, fails)).run()
    assert not any(kind == "applied" for kind, *_ in log)


def test_without_a_journal_decisions_are_applied_all_the_same():
    script = Script(arrival(0, "a"))
    assert engine(script).run() is Stopped.FINISHED
    assert script.log == [("applied", ["a"])]


class Writes:
    """Writes a letter before and after its user's job is started."""

    @hookimpl
    def react(self, state):
        return [Tell("ann", "before", "x")] if state.now == 0 else []

    @hookimpl
    def control(self, state):
        return [Tell("ben", "after", "y", "why")] if state.now == 0 else []


class Carrier:
    def __init__(self, log):
        self.log = log

    def send(self, tell):
        self.log.append(("sent", tell.user))
        return Outcome(tell.user == "ann", "not to ben")


@pytest.mark.parametrize("mode", [Mode.DRIVE, Mode.DRY_RUN, Mode.MONITOR])
def test_letters_are_sent_in_mode_drive_alone_and_no_cluster_is_asked(mode):
    log, told, drives = [], [], mode is Mode.DRIVE
    one = engine(
        Script(arrival(0, "a"), log=log), Notebook(log), Writes(), mode=mode, letters=Carrier(log),
        on_decisions=lambda now, decisions, outcomes: told.extend(zip(decisions, outcomes, strict=True)),
    )  # fmt: skip
    one.run()
    assert [sent for sent in log if sent[0] == "sent"] == (
        [("sent", "ann"), ("sent", "ben")] if drives else []
    )
    assert [applied for applied in log if applied[0] == "applied"] == (
        [] if mode is Mode.MONITOR else [("applied", ["a"])]
    )
    assert [type(decision) for decision, _ in told] == [Tell, Start, Tell]
    assert [outcome.accepted for _, outcome in told] == {
        Mode.DRIVE: [True, True, False], Mode.DRY_RUN: [True] * 3, Mode.MONITOR: [False] * 3,
    }[mode]  # fmt: skip
    if not drives:
        assert "the letter would have been sent" in told[0][1].message
    order = [entry[0] for entry in log]
    assert order.index("decisions") < min(at for at, what in enumerate(order) if what in ("sent", "outcomes"))


def test_without_a_journal_a_letter_reaches_no_cluster_either():
    script = Script(arrival(0, "a"))
    engine(script, None, Writes()).run()
    assert script.log == [("applied", ["a"])]


def test_the_log_says_to_whom_a_letter_is_and_what_about():
    said = []
    one = engine(Script(arrival(0, "a")), Notebook([]), Writes(), mode=Mode.MONITOR)
    one._log.info = lambda what, **more: said.append((what, more))
    one.run()
    letters = [more for what, more in said if what == "would do" and more["decision"] == "Tell"]
    assert [(more["user"], more["subject"], more["reason"]) for more in letters] == [
        ("ann", "before", ""), ("ben", "after", "why"),
    ]  # fmt: skip


def test_in_monitor_mode_nothing_is_applied_and_everything_is_written():
    log = []
    engine(Script(arrival(0, "a"), log=log), Notebook(log), mode=Mode.MONITOR).run()
    assert [kind for kind, *_ in log] == ["events", "decisions", "outcomes", "checkpoint"]
    assert ("outcomes", 1, [False]) in log


def three_in_turn():
    """Three jobs that each take all processors; the first of them ends early."""
    jobs = [described(name, 8, 100.0) for name in ("big", "first", "second")]
    return [
        (0.0, [ev.JobSubmitted(0.0, job) for job in jobs]),
        (1.0, [ev.JobStarted(1.0, "big", ())]),
        (50.0, [ev.JobEnded(50.0, "big", "completed")]),
    ]


class Shows(Script):
    """A cluster whose commands show planned starts."""

    shows_starts = True

    def show_starts(self, planned):
        self.log.append(("planned", sorted(planned)))


@pytest.mark.parametrize("journal", [True, False])
def test_planned_starts_are_shown_after_what_was_decided(journal):
    log = []
    adapter = Shows(*three_in_turn(), log=log)
    engine(adapter, Notebook([]) if journal else None, policy=Conservative).run()
    assert log == [
        ("applied", ["big"]), ("planned", [("first", 100.0), ("second", 200.0)]),
        ("planned", [("first", 101.0), ("second", 201.0)]),
        # What is planned moves with what ends.
        ("applied", ["first"]), ("planned", [("second", 150.0)]),
    ]  # fmt: skip


@pytest.mark.parametrize("mode", [Mode.MONITOR, Mode.DRY_RUN])
def test_planned_starts_are_shown_in_mode_drive_alone(mode):
    log = []
    engine(Shows(*three_in_turn(), log=log), mode=mode, policy=Conservative).run()
    assert not any(kind == "planned" for kind, _ in log)


def test_a_cluster_that_shows_none_is_told_none():
    log = []
    adapter = Shows(*three_in_turn(), log=log)
    adapter.shows_starts = False
    engine(adapter, policy=Conservative).run()
    assert not any(kind == "planned" for kind, _ in log)


def test_the_deadline_is_the_schedulers_next_wakeup():
    script = Script(
        (0, [ev.JobSubmitted(0, described("a", begin_time=50))]), (50, []), (60, [ev.JobEnded(60, "a")])
    )
    engine(script).run()
    assert script.deadlines == [None, 50, None, None]
    assert script.log == [("applied", ["a"])]


def test_it_stops_after_the_cycle_in_which_it_is_told_to():
    script = Script()
    loop = engine(script)

    def interrupted():
        loop.stop()
        return arrival(0, "a")

    script.moments = [interrupted, arrival(5, "b")]
    assert loop.run() is Stopped.STOPPED
    assert script.log == [("applied", ["a"])]
    assert script.woken == 1


def test_a_reload_ends_the_loop_for_the_caller_to_begin_again():
    script = Script()
    loop = engine(script)
    script.moments = [lambda: (loop.reload(), arrival(0, "a"))[1], arrival(5, "b")]
    assert loop.run() is Stopped.RELOAD


def test_a_run_goes_on_until_the_next_one_is_ready():
    answers = iter([False, True, True])
    asked = []

    def succeeds(why):
        asked.append(why)
        if len(asked) == 2:
            # A second order while the first is acted upon is about what is read from now on.
            loop.reload()
        return next(answers)

    script = Script()
    loop = engine(script, succeeds=succeeds)
    script.moments = [
        lambda: (loop.reload(), arrival(0, "a"))[1],
        lambda: (loop.reload(), arrival(5, "b"))[1],
        arrival(9, "c"),
    ]
    assert loop.run() is Stopped.RELOAD
    assert asked == [Stopped.RELOAD] * 3
    assert script.log == [("applied", ["a"]), ("applied", ["b"])]
    assert not loop.reload_is_due


def test_a_stop_while_the_next_run_is_made_ends_both():
    script = Script()
    loop = engine(script, succeeds=lambda why: bool(loop.stop()) or True)
    script.moments = [lambda: (loop.reload(), arrival(0, "a"))[1], arrival(5, "b")]
    assert loop.run() is Stopped.STOPPED


def test_a_stop_is_stronger_than_a_reload_whatever_comes_first():
    for order in (("stop", "reload"), ("reload", "stop")):
        loop = engine(Script(arrival(0, "a")))
        for what in order:
            getattr(loop, what)()
        assert loop.run() is Stopped.STOPPED


def test_plugins_hear_of_the_end_after_their_state_was_taken():
    log = []

    class Keeps:
        @hookimpl
        def checkpoint(self):
            log.append(("asked",))
            return {"n": 1}

        @hookimpl
        def shutdown(self):
            log.append(("shutdown",))

    engine(Script((0, []), log=log), Notebook(log), Keeps()).run()
    assert log[1:] == [("asked",), ("shutdown",), ("checkpoint", 1, {"keeps": {"n": 1}})]


class Promises:
    """Keeps whom it has seen."""

    traits = Traits(checkpoint="promises")

    def __init__(self):
        self.seen = []
        self.count = 0
        self.asked = 0

    @hookimpl
    def promised(self):
        return self.count

    @hookimpl
    def observe(self, event):
        if isinstance(event, ev.JobSubmitted):
            self.seen.append(event.job.id)
            self.count += 1

    @hookimpl
    def checkpoint(self):
        self.asked += 1
        return list(self.seen)


class Learns:
    """Another plugin with something to remember."""

    @hookimpl
    def checkpoint(self):
        return {"much": 1}


def test_promises_are_written_down_before_anything_is_applied():
    log = []
    engine(Script(arrival(0, "a"), (5, [ev.Tick(5)]), log=log), Notebook(log), Promises()).run()
    assert [entry for entry in log if entry[0] in ("checkpoint", "applied")] == [
        ("checkpoint", 1, {"promises": ["a"]}),
        ("applied", ["a"]),
        ("checkpoint", 2, {"promises": ["a"]}),
    ]


def test_in_further_cycles_only_who_promised_something_is_written():
    log = []
    cycles = (arrival(0, "a"), arrival(5, "b"), (6, [ev.Tick(6)]))
    engine(Script(*cycles, log=log), Notebook(log), Promises(), Learns()).run()
    assert [entry for entry in log if entry[0] == "checkpoint"] == [
        ("checkpoint", 1, {"promises": ["a"], "learns": {"much": 1}}),
        ("checkpoint", 2, {"promises": ["a", "b"]}, ["promises"]),
        ("checkpoint", 3, {"promises": ["a", "b"], "learns": {"much": 1}}),
    ]


def test_a_cycle_in_which_nothing_was_promised_asks_nobody():
    plugin = Promises()
    engine(Script(arrival(0, "a"), *[(at, [ev.Tick(at)]) for at in range(1, 9)]), Notebook([]), plugin).run()
    assert plugin.asked == 2, "in the cycle of the promise and at the end"


def test_who_promises_must_count_it():
    class Careless:
        traits = Traits(checkpoint="promises")

    with pytest.raises(UserError, match=r"'careless': .* expected the hook `promised`.*, found none"):
        plugged(Careless())


def test_states_are_checkpointed_now_and_then():
    log = []
    engine(Script(*[(at, []) for at in range(CHECKPOINT_CYCLES + 1)], log=log), Notebook(log)).run()
    assert [entry[1] for entry in log if entry[0] == "checkpoint"] == [
        CHECKPOINT_CYCLES,
        CHECKPOINT_CYCLES + 1,
    ]


def test_plugins_that_raise_are_in_the_log_by_name():
    class Breaks:
        @hookimpl
        def observe(self):
            raise ValueError("oops")

    loop = engine(Script((0, [ev.Tick(0)])), None, Breaks())
    loop.run()
    ((what, more),) = loop._log.errors
    assert (what, more["plugin"], more["hook"]) == ("plugin failed", "breaks", "observe")
    assert "oops" in more["message"] and "Traceback" in more["traceback"]


def test_a_plugin_that_raises_in_each_cycle_is_in_the_log_in_full_once_and_then_counted():
    class Breaks:
        @hookimpl
        def observe(self, event):
            raise ValueError(f"oops at {event.time}")

    loop = engine(Script(*[(at, [ev.Tick(at)]) for at in range(25)]), None, Breaks())
    loop.run()
    told = [(more.get("times", 1), "traceback" in more) for _, more in loop._log.errors]
    assert told == [(1, True), (10, False), (25, False)]
    (failure,) = loop.failures.of_plugins(loop.scheduler.answered)
    assert failure.times == 25 and failure.always


def test_who_watches_is_told_of_cycles_and_of_decisions_with_their_outcomes():
    cycles, decided = [], []
    engine(
        Script(arrival(0, "a"), (3, [])),
        on_cycle=cycles.append,
        on_decisions=lambda now, decisions, outcomes: decided.append((now, decisions, outcomes)),
    ).run()
    assert cycles == [0, 3]
    ((now, decisions, outcomes),) = decided
    assert now == 0 and isinstance(decisions[0], Start) and outcomes == [Outcome(True, "fine")]
