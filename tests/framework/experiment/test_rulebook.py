"""Each rule of the rule book, kept and broken, under its number; acceptance, exclusion, strictness."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

from headway.errors import UserError
from headway.experiment.campaign import Campaign, Row, Scenario, Variant
from headway.experiment.facts import WorkloadFacts
from headway.experiment.method import Method, Trim, trim_of
from headway.experiment.planned_starts import PlannedStarts, RealCluster
from headway.experiment.rulebook import (
    RULES,
    Finding,
    Judged,
    Kind,
    Outcome,
    Stage,
    breaches,
    evidence_of,
    excluded,
    judge,
    rule,
)
from headway.experiment.rulebook.comparisons import verdicts
from headway.journal.latencies import Latencies
from headway.plugins import Catalogue, PluginConfig

FIGURES = {
    "jobs": 6000.0, "measured jobs": 5700.0, "first measured": 300.0, "unsteady": 0.0, "offered load": 0.8,
    "achieved load": 0.79, "queued deficit": 0.001, "wait rise p": 0.4, "mean wait": 1000.0,
    "mean bounded slowdown": 4.0, "median bounded slowdown": 2.0, "geometric mean bounded slowdown": 3.0,
    "top 1 % of bounded slowdown": 0.1, "mean bounded slowdown at 1 s": 5.0,
    "mean bounded slowdown at 60 s": 3.0,
    "share waiting": 0.6, "mean wait of those that waited": 1700.0,
    "mean wait prime time": 40.0, "mean wait other time": 20.0,
    "total runtime": 5e6, "mean wait SN": 1.0, "mean wait LN": 2.0,
    "mean wait SW": 3.0, "mean wait LW": 4.0, "unfinished at last submission": 9.0,
    "processors of unfinished": 8.0, "refused": 0.0, "never started": 0.0, "unfinished": 0.0,
    "ended at limit": 10.0, "internal fragmentation": 0.0,
}  # fmt: skip

FACTS = WorkloadFacts(
    scenario="w", x=0.8, seed=1, recorded=False, jobs=6000, span=30 * 86400.0, longest_runtime=86400.0,
    at_one_instant=0.001, gap_cv=3.0, idc_hour=10.0, idc_day=30.0, powers_of_two=0.85, estimated=1.0,
    exact_estimates=0.001, estimate_concentration=0.05, largest_user_week=0.5, flurry_user="7",
    flurry_week=1, flurry_jobs=50, flurry_all=100, interactive=0.0, short=0.1, memory=0.0, processors=128,
    own_processors=128,
    dropped=0, dropped_why="", too_large=0.0, too_large_work=0.0, cleaned=True, digest="abc",
)  # fmt: skip
LOG = replace(FACTS, recorded=True)

EASY, FCFS, CONSERVATIVE = (Variant(name, (PluginConfig(name),)) for name in ("easy", "fcfs", "conservative"))
CATALOGUE = Catalogue()
AUTOMATIC = Method(warmup=Trim(automatic=True), cooldown=Trim(automatic=True))


def campaign(
    *variants: Variant, models: tuple[str, ...] = ("m",), method: Method = AUTOMATIC, **scenario: Any
):
    found = [Scenario("w", 0.8, 128, model=model, **scenario) for model in models]
    return Campaign(variants or (EASY, CONSERVATIVE), tuple(found), (1, 2, 3), method)


def rows(facts: WorkloadFacts = FACTS, seeds: int = 3, **changes: Any) -> list[Row]:
    """Rows of two policies, the second a tenth worse; ``changes``: of the figures of both, or of one in a
    list."""
    found = []
    for seed in range(1, seeds + 1):
        for at, name in enumerate(("easy", "conservative")):
            values = {**FIGURES, "mean wait": 1000.0 + 5 * seed + 100 * at}
            values["mean bounded slowdown"] += 0.01 * seed + 0.4 * at
            values["geometric mean bounded slowdown"] += 0.01 * seed + 0.3 * at
            values.update({
                key: value[at] if isinstance(value, list) else value for key, value in changes.items()
            })  # fmt: skip
            found.append(Row("w", 0.8, name, seed, values, {}, replace(facts, seed=seed)))
    return found


def judged(name: str, plan: Campaign, **known: Any) -> Judged:
    return next(one for one in judge(evidence_of(plan, CATALOGUE, **known)) if one.rule.name == name)


def outcome(name: str, plan: Campaign | None = None, **known: Any) -> str:
    return str(judged(name, plan or campaign(), **known).outcome)


def of_facts(name: str, facts: WorkloadFacts, plan: Campaign | None = None) -> Judged:
    return judged(name, plan or campaign(), workloads=[facts])


def test_every_rule_has_a_name_of_its_own_and_says_what_keeps_it():
    assert len({one.name for one in RULES}) == len(RULES)
    assert all(one.title and one.keep.endswith(".") and 1 <= one.severity <= 3 for one in RULES)


@pytest.mark.parametrize(
    ("changes", "found", "says"),
    [
        ({}, "kept", "85% powers of two"),
        (
            {"powers_of_two": 0.51},
            "broken",
            "51% of sizes are powers of two; production logs have 74 to 92 %",
        ),
        ({"gap_cv": 1.0}, "broken", "as if drawn by Poisson"),
    ],
)
def test_1_models_are_like_logs(changes, found, says):
    one = of_facts("1", replace(FACTS, **changes))
    assert str(one.outcome) == found and says in str(one)
    assert of_facts("1", replace(LOG, **changes)).outcome is Outcome.OTHER


@pytest.mark.parametrize("changes", [{"at_one_instant": 0.5}, {"span": 3600.0}])
def test_2_jobs_that_are_all_there_at_the_beginning_are_refused(changes):
    facts = replace(FACTS, **changes)
    assert of_facts("2", facts).outcome is Outcome.REFUSED
    assert of_facts("2", facts, campaign(method=Method(system="static"))).outcome is Outcome.NOTED
    assert of_facts("2", FACTS).outcome is Outcome.KEPT


def test_3_fewer_than_four_workloads():
    assert outcome("3") == "broken"
    assert outcome("3", campaign(models=("a", "b", "c", "d"))) == "kept"


@pytest.mark.parametrize("changes", [{"gap_cv": 1.9}, {"idc_hour": 4.9}, {"idc_day": 9.9}])
def test_4_models_that_are_calmer_than_logs(changes):
    assert of_facts("4", replace(FACTS, **changes)).outcome is Outcome.BROKEN
    assert of_facts("4", FACTS).outcome is Outcome.KEPT


def test_5_flurries_and_logs_that_nobody_cleaned():
    flooded = of_facts(
        "5", replace(LOG, largest_user_week=3.5, flurry_jobs=350, flurry_all=450, flurry_week=3)
    )
    assert "user 7 submitted 350 of the 450 jobs of week 4" in str(flooded)
    assert flooded.outcome is Outcome.BROKEN
    assert of_facts("5", replace(LOG, cleaned=False)).outcome is Outcome.NOT_STATED
    assert of_facts("5", LOG).outcome is Outcome.KEPT


@pytest.mark.parametrize(("name", "key"), [("7", "usage")])
def test_7_a_question_is_not_stated_until_it_is_answered(name, key):
    assert outcome(name) == "not stated"
    assert outcome(name, campaign(method=Method(**{key: "mostly serial"}))) == "kept"


def test_6_feedback_stands_beside_the_open_replay():
    assert outcome("6", campaign(method=Method(system="closed"))) == "broken"
    opened = Scenario("w", 0.8, 128, trace="t.swf")
    chained = replace(opened, label="w, chains", feedback="chains")
    both = replace(campaign(), scenarios=(opened, chained))
    alone = replace(campaign(), scenarios=(chained, replace(opened, x=0.9, target_load=0.9)))
    assert outcome("6", both) == "kept"
    assert "the open replay is not beside it" in str(judged("6", alone))
    facts = replace(LOG, scenario="w, chains", following=0.4, inferred=True)
    found = judged("6", both, workloads=[facts])
    assert "40% of jobs follow another, as inferred from users' think times" in str(found)
    assert outcome("6", both, workloads=[replace(facts, following=0.0)]) == "broken"


def test_6_8_24_30_32_are_said():
    for name in ("6", "8", "24", "30", "32"):
        assert outcome(name) == "noted"


REAL = RealCluster(
    "site", 9.0, Latencies((1.0, 3.0), (2.0,)),
    {"drive": PlannedStarts(12, 10, (1.5, 4.0, 6.0), 1.9, failed=2), "monitor": PlannedStarts(3)},
)  # fmt: skip


def beside(real: RealCluster | None = REAL, **changes: Any) -> Method:
    return replace(AUTOMATIC, real=real, measured="cluster.json", **changes)


def test_30_asks_for_the_latencies_of_a_real_run_that_are_not_used():
    one = judged("30", campaign(method=beside()))
    assert one.outcome is Outcome.NOT_STATED
    assert "of cluster site is known from a decision to the start half within 2.0 s" in str(one)
    assert "latencies: [0, measured]" in str(one)
    assert one.findings[0].numbers["start p50"] == 2.0
    answered = judged("30", campaign(method=beside(overhead="jobs run for days")))
    assert answered.outcome is Outcome.NOTED
    assert "jobs run for days" in str(answered) and "not used" in str(answered)


def test_30_says_how_a_journal_is_used_where_none_was():
    assert "no journal of a real cluster was used: headway starts -c CONFIG --out" in str(
        judged("30", campaign())
    )
    found = judged("30", campaign(method=beside(RealCluster("site"))))
    assert found.outcome is Outcome.NOTED and "no latency of cluster site was measured yet" in str(found)


def test_30_is_kept_where_starts_take_time():
    measured = judged("30", campaign(method=beside(), latencies=REAL.latencies))
    assert measured.outcome is Outcome.KEPT and "as measured: from a decision to the start" in str(measured)
    fixed = judged("30", campaign(latencies=Latencies((5.0,))))
    assert fixed.outcome is Outcome.KEPT and "each start takes 5 s" in str(fixed)


def test_32_planned_starts_stand_beside_real_ones():
    one = judged("32", campaign(method=beside()))
    assert one.outcome is Outcome.KEPT
    assert "cluster site, driven: 10 of 12 planned starts took place, half within 1.5 s" in str(one)
    assert one.findings[0].numbers["later p95"] == 4.0
    assert [finding.kind for finding in one.findings] == [Kind.KEPT]


def test_32_without_them_it_is_said_that_all_was_emulated():
    assert "emulated only; planned beside real starts" in str(judged("32", campaign()))
    found = judged("32", campaign(method=beside(RealCluster("site"))))
    assert found.outcome is Outcome.NOTED and "no planned start of cluster site came" in str(found)


def test_9_20_applications_that_share_processors():
    sharing = campaign(EASY, Variant("measy", (PluginConfig("measy"),)))
    assert (outcome("9"), outcome("20")) == ("does not apply", "does not apply")
    assert (outcome("9", sharing), outcome("20", sharing)) == ("not stated", "kept")
    assert outcome("9", replace(sharing, method=Method(applications="the NAS benchmarks"))) == "kept"


@pytest.mark.parametrize(
    ("answers", "changes", "says"),
    [
        ({"estimates": "users"}, {"exact_estimates": 1.0}, "says users', and 100% are exact"),
        ({"estimates": "exact"}, {}, "says exact, and 0% are"),
        ({"interactive": "left out"}, {"interactive": 0.3}, "says left out, and 30% of jobs are interactive"),
    ],
)
def test_g3_what_is_said_is_what_is_measured(answers, changes, says):
    found = of_facts("G3", replace(FACTS, **changes), campaign(method=Method(**answers)))
    assert found.outcome is Outcome.BROKEN and says in str(found)
    assert of_facts("G3", FACTS, campaign(method=Method(estimates="users"))).outcome is Outcome.KEPT


def test_12_memory_of_logs_and_of_moldable_jobs():
    assert of_facts("12", replace(LOG, memory=0.99)).outcome is Outcome.NOTED
    assert of_facts("12", LOG).outcome is Outcome.OTHER
    molding = campaign(Variant("moldable", (PluginConfig("moldable"),)))
    assert of_facts("12", FACTS, molding).outcome is Outcome.REFUSED
    assert of_facts("12", replace(FACTS, moldable=1.0), molding).outcome is Outcome.OTHER


def test_13_resizing_without_a_speedup():
    assert outcome("13", campaign(Variant("moldable", (PluginConfig("moldable"),)))) == "broken"
    assert outcome("13") == "does not apply"


def test_14_interactive_jobs():
    facts = replace(LOG, interactive=0.31)
    assert "31% of jobs are of the interactive queue" in str(of_facts("14", facts))
    assert of_facts("14", facts).outcome is Outcome.NOT_STATED
    assert of_facts("14", facts, campaign(method=Method(interactive="included"))).outcome is Outcome.KEPT


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"exact_estimates": 1.0}, "100% exact; logs: 0.2 % at most"),
        ({"exact_estimates": 0.0, "estimate_concentration": 1.0}, "one multiple of the runtime"),
        (
            {"estimated": 0.0, "exact_estimates": None, "estimate_concentration": None},
            "no job has an estimate",
        ),
    ],
)
def test_15_estimates_that_no_user_would_give(changes, says):
    one = of_facts("15", replace(FACTS, **changes))
    assert one.outcome is Outcome.BROKEN and says in str(one)
    assert of_facts("15", replace(FACTS, **changes), campaign(FCFS)).outcome is Outcome.OTHER
    assert of_facts("15", FACTS).outcome is Outcome.KEPT


def test_16_levels_of_multiprogramming():
    assert outcome("16", campaign(Variant("measy", (PluginConfig("measy"),)))) == "kept"
    assert outcome("16") == "does not apply"


def test_17_a_log_on_another_machine():
    """Vector 4.10 as well: 3 jobs of 4, 8, 16 processors on 8, one of which is dropped."""
    assert of_facts("17", replace(LOG, processors=100)).outcome is Outcome.BROKEN
    refused = of_facts("17", replace(LOG, processors=8, own_processors=16, too_large=1 / 3, dropped=1))
    assert (
        refused.outcome is Outcome.REFUSED and "33% of jobs" in str(refused) and "its own 16" in str(refused)
    )
    assert of_facts("17", replace(LOG, own_processors=None)).outcome is Outcome.NOT_STATED
    assert of_facts("17", LOG).outcome is Outcome.KEPT


@pytest.mark.parametrize(
    ("scaled", "found"),
    [
        ({"times between submissions": 0.9}, "kept"),
        ({"times between submissions": 0.7}, "broken"),
        ({"runtimes": 1.1}, "noted"),
        ({"runtimes": 1.5}, "broken"),
        ({"sizes": 1.1}, "broken"),
        ({"times between submissions": 1.0, "runtimes": 1.0, "sizes": 1.0}, "does not apply"),
    ],
)
def test_18_a_logs_load_is_changed_by_arrivals_and_not_by_much(scaled, found):
    assert str(of_facts("18", replace(LOG, scaled=scaled)).outcome) == found


def test_18_says_the_offered_load_that_is_reached():
    changed = {"scaled": {"times between submissions": 0.9}, "offered_load": 0.8}
    one = of_facts("18", replace(LOG, **changed))
    assert "offered load 0.800 by times between submissions x 0.9" in str(one)
    assert one.findings[0].numbers["offered load"] == 0.8
    # Results that were kept before it was written down.
    unknown = of_facts("18", replace(LOG, scaled={"sizes": 1.1}))
    assert "w, 0.8: sizes x 1.1" in str(unknown)


def test_19_nobody_backfills():
    assert outcome("19", campaign(FCFS)) == "broken"
    assert outcome("19", campaign(FCFS, EASY)) == "kept"


def test_21_22_verdicts_are_on_metrics_of_an_open_system():
    assert outcome("21", rows=rows()) == outcome("22", rows=rows()) == "kept"
    found = verdicts(evidence_of(campaign(), CATALOGUE, rows=rows()), {})
    assert {one.metric for one in found} == {"mean wait", "mean bounded slowdown"}


def test_23_a_verdict_on_a_skewed_mean_holds_for_the_geometric_mean_too():
    assert outcome("23", rows=rows()) == "kept"
    assert outcome("23", rows=rows(**{"top 1 % of bounded slowdown": 0.5})) == "noted"
    apart = rows(**{"geometric mean bounded slowdown": [3.0, 2.5]})
    assert outcome("23", rows=apart) == "broken"
    found = verdicts(evidence_of(campaign(), CATALOGUE, rows=apart), {})
    assert [one.says for one in found] == ["more", "depends on the statistic"]


def test_24_few_machine_sizes():
    sizes = tuple(Scenario("w", size, size, model="m") for size in (64, 128))
    assert outcome("24", replace(campaign(), scenarios=sizes)) == "broken"


def test_25_a_saturated_point_is_left_out_of_verdicts():
    full = rows(**{"queued deficit": [0.001, 0.088], "offered load": 0.95})
    one = judged("25", campaign(), rows=full)
    assert one.outcome is Outcome.BROKEN and "saturated in 3 of 3 runs" in str(one)
    assert "at most 8.8% queued" in str(one)
    out = excluded([one])
    assert list(out) == [("w", 0.8, "conservative")]
    evidence = evidence_of(campaign(), CATALOGUE, rows=full)
    assert {v.says for v in verdicts(evidence, out)} == {"excluded: rule 25, saturated workloads"}
    assert outcome("25", rows=rows(**{"queued deficit": 0.012})) == "broken"
    assert outcome("25", rows=rows()) == "kept"


def test_25_points_that_are_left_out_are_no_breach_while_others_are_left():
    others = [replace(row, x=0.6) for row in rows()]
    one = judged("25", campaign(), rows=rows(**{"queued deficit": 0.1}) + others)
    assert one.outcome is Outcome.EXCLUDED and not breaches([one])


def test_25_points_that_are_left_out_hide_no_warning_of_others():
    others = [replace(row, x=0.6) for row in rows(**{"queued deficit": 0.012})]
    one = judged("25", campaign(), rows=rows(**{"queued deficit": 0.1}) + others)
    assert one.outcome is Outcome.BROKEN and str(one).startswith("w, 0.6, easy: perhaps saturated")
    assert {x for _, x, _ in excluded([one])} == {0.8}


def test_25_can_be_accepted_with_a_reason():
    plan = campaign(method=replace(AUTOMATIC, accept={"25": "studies admission control"}))
    one = judged("25", plan, rows=rows(**{"queued deficit": 0.1}))
    assert one.outcome is Outcome.ACCEPTED and "accepted: studies admission control" in str(one)
    assert not excluded([one]) and not breaches([one])


def test_26_what_jobs_hold_and_did_not_ask_for():
    assert outcome("26", rows=rows(**{"internal fragmentation": 0.06})) == "noted"
    assert outcome("26", rows=rows()) == "kept"


def test_27_short_runs_and_wide_intervals():
    assert outcome("27", rows=rows(**{"measured jobs": 1000.0})) == "broken"
    assert outcome("27", rows=rows()) == "kept"
    wide = rows()
    wide[0].values["mean wait"] = 3000.0
    assert "inconclusive: mean wait known to" in str(judged("27", campaign(), rows=wide))


def test_27_a_single_run_has_its_interval_from_batches():
    (easy, *_) = rows(LOG, seeds=1)
    independent = [1000.0 + 40 * (37 * at % 30) for at in range(30)]
    evidence = [replace(easy, batches={"mean wait": independent})]
    assert "from 30 batches" in str(judged("27", campaign(), rows=evidence))
    rising = [replace(easy, batches={"mean wait": [1000.0 + at for at in range(30)]})]
    assert "neighbouring batches of the run depend on each other (r 0.90)" in str(
        judged("27", campaign(), rows=rising)
    )


def test_28_29_warm_up_and_cool_down():
    assert outcome("28", rows=rows()) == outcome("29", rows=rows()) == "kept"
    kept = campaign(method=Method())
    assert outcome("28", kept, rows=rows(**{"first measured": 0.0})) == "broken"
    assert outcome("29", kept, rows=rows()) == "broken"
    assert "no steady state" in str(judged("28", campaign(), rows=rows(unsteady=1.0)))
    assert "drift" in str(judged("28", campaign(), rows=rows(**{"wait rise p": 0.001})))


def test_31_those_that_wait_are_shown_by_themselves():
    assert outcome("31", rows=rows(**{"share waiting": 0.4})) == "noted"
    assert outcome("31", rows=rows()) == "kept"


def test_22_the_largest_load_that_is_not_saturated():
    heavy = [replace(row, x=0.9) for row in rows(**{"offered load": 0.9, "queued deficit": 0.06})]
    findings = judged("22", rows=[*rows(), *heavy], plan=campaign()).findings
    assert [one.numbers["largest load not saturated"] for one in findings] == pytest.approx([0.8, 0.8])


def test_3_e5_wins_are_counted_over_workloads():
    other = [replace(row, scenario="v") for row in rows(**{"mean wait": [1000.0, 900.0]})]
    findings = judged("E5", campaign(), rows=[*rows(), *other]).findings
    said = [one.message for one in findings if one.message.startswith("mean wait")]
    assert said == ["mean wait: less somewhere on 1, more on 1 of 2 workloads"]


def test_31_a_class_without_jobs_is_not_shown():
    found = str(judged("31", campaign(), rows=rows(**{"mean wait SN": float("nan")})))
    assert "by class LN" in found and "nan" not in found


def test_31_prime_time_is_shown_by_itself():
    assert "submitted in prime time 40 s, else 20 s" in str(judged("31", campaign(), rows=rows()))
    nan = float("nan")
    models = rows(**{"mean wait prime time": nan, "mean wait other time": nan})
    assert "prime time" not in str(judged("31", campaign(), rows=models)).split("by class")[1]


def test_g1_what_a_repetition_needs():
    assert outcome("G1", rows=rows(LOG)) == "kept"
    assert outcome("G1", rows=rows(replace(LOG, digest=""))) == "broken"


def test_g2_a_tunable_option_with_one_value():
    def delayed(*skips: int) -> Campaign:
        plugins = [(PluginConfig("delayed-los", {"max_skips": most}),) for most in skips]
        return campaign(*(Variant(f"{at}", one) for at, one in enumerate(plugins)))

    assert outcome("G2", delayed(7)) == "broken"
    assert outcome("G2", delayed(3, 7)) == "kept"
    assert outcome("G2") == "does not apply"


def test_e1_no_verdict_without_an_interval():
    assert outcome("E1", rows=rows()) == "kept"
    assert outcome("E1", rows=rows(seeds=1)) == "broken"
    assert outcome("E2", rows=rows()) == outcome("E5", rows=rows()) == "kept"


def test_e1_no_verdict_where_a_run_measured_no_jobs():
    """All that is left of a short, saturated run after warm-up and cool-down may be nothing."""
    none = rows(**{"mean wait": [100.0, math.nan]})
    found = verdicts(evidence_of(campaign(), CATALOGUE, rows=none), {})
    assert [one.says for one in found] == ["no verdict: 3 of 6 runs measured no jobs", "more"]
    assert outcome("E1", rows=none) == "broken"


def test_e3_a_policy_that_changes_the_runtimes_is_left_out():
    one = judged("E3", campaign(), rows=rows(**{"offered load": [0.8, 0.82]}))
    assert one.outcome is Outcome.BROKEN and "the policy changed the runtimes" in str(one)
    assert list(excluded([one])) == [("w", 0.8, "conservative")]


def test_e3_where_submissions_react_the_work_is_compared_and_not_the_load():
    plan = replace(campaign(), scenarios=(Scenario("w", 0.8, 128, trace="t.swf", feedback="chains"),))
    loads = {"offered load": [0.8, 0.75]}
    assert outcome("E3", plan, rows=rows(**loads)) == "kept"
    assert "submissions react" in str(judged("E3", plan, rows=rows(**loads)))
    assert outcome("E3", plan, rows=rows(**loads, **{"total runtime": [5e6, 5.1e6]})) == "broken"


def test_e4_more_jobs_are_killed_under_one_policy():
    assert outcome("E4", rows=rows()) == "kept"
    one = judged("E4", campaign(), rows=rows(**{"ended at limit": [10.0, 100.0]}))
    assert one.outcome is Outcome.BROKEN and "ended at limit: easy 10, conservative 100" in str(one)


def test_what_is_not_known_yet_is_not_judged():
    found = judge(evidence_of(campaign(), CATALOGUE))
    assert {one.outcome for one in found if one.rule.stage is not Stage.DEFINITION} == {Outcome.UNKNOWN}
    assert not [one for one in breaches(found) if one.rule.stage is not Stage.DEFINITION]


def test_a_rule_that_does_not_exist_cannot_be_accepted():
    with pytest.raises(UserError, match=r"expected rules .*, found '99'"):
        judge(evidence_of(campaign(method=Method(accept={"99": "why not"})), CATALOGUE))


def test_a_researcher_adds_a_rule():
    @rule("S1", "holidays", "No workload spans a holiday.", severity=1, stage=Stage.WORKLOAD)
    def holidays(evidence):
        for facts in evidence.workloads:
            yield Finding(Kind.WARN, f"{facts.span / 86400:.0f} days", facts.scenario, facts.x)

    (one,) = judge(evidence_of(campaign(), CATALOGUE, workloads=[FACTS]), [holidays])
    assert one.outcome is Outcome.BROKEN and str(one) == "w, 0.8: 30 days"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("auto", Trim(automatic=True)),
        ("none", Trim()),
        ("500 jobs", Trim(jobs=500)),
        ("2d", Trim(seconds=172800.0)),
    ],
)
def test_what_is_left_out_at_an_end(text, expected):
    assert trim_of(text, "method.warmup") == expected


def test_something_else_is_not_left_out():
    with pytest.raises(UserError, match=r"method\.warmup: expected auto, none, .* found 'some'"):
        trim_of("some", "method.warmup")
