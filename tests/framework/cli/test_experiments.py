"""``headway compare``, ``tune`` and ``reproduce``."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml
from commandline import Headway

from headway.experiment import Campaign, Scenario, Variant
from headway.experiment.claims_page import broken_rules
from headway.experiment.reproduction import Context
from headway.plugins import PluginConfig
from headway_plugins.reproductions import los

CAMPAIGN = """
processors: 64
policies: [fcfs, easy]
workloads: [{label: month, model: month, options: {days: 2}, loads: [0.5, 0.8]}]
seeds: 2
"""


@pytest.fixture
def campaign(tmp_path: Path) -> Path:
    file = tmp_path / "campaign.yaml"
    file.write_text(CAMPAIGN)
    return file


def test_compare_prints_means_with_intervals_and_writes_rows_and_plots(
    headway: Headway, campaign: Path, tmp_path: Path
) -> None:
    ran = headway("compare", campaign, "--out", tmp_path / "out", "--workers", 1)
    assert ran.code == 0, ran.err
    assert "means over 2 seeds" in ran.out
    assert "±" in ran.out
    assert len((tmp_path / "out" / "rows.csv").read_text().splitlines()) == 1 + 8
    assert (tmp_path / "out" / "month.png").read_bytes().startswith(b"\x89PNG")


def test_compare_writes_a_page_with_what_the_rules_say(
    headway: Headway, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "300")
    file = tmp_path / "one & two.yaml"
    file.write_text(CAMPAIGN.replace("label: month", "label: '<b>month</b>'"))
    ran = headway("compare", file, "--out", tmp_path / "out", "--workers", 1)
    assert ran.code == 0, ran.err
    page = (tmp_path / "out" / "report.html").read_text()
    assert "<h1>Campaign one &amp; two</h1>" in page
    assert "<td>&lt;b&gt;month&lt;/b&gt;</td>" in page and "<b>month" not in page
    assert page.count('src="data:image/png;base64,') == 1 and "http" not in page
    # Each line of the terminal's table of rules, and what is counted above it.
    count = re.search(r"How far to trust this: .*", ran.out)
    assert count is not None and count[0].strip() in page
    rules = [line.split() for line in ran.out.split("How far to trust this")[1].splitlines()[1:] if line]
    assert len(rules) > 20 and all(f"<td>{words[0]}</td>" in page for words in rules)


def test_compare_says_once_a_trace_what_was_left_out_of_it(headway: Headway, tmp_path: Path) -> None:
    job = "{} {} 0 100 {} -1 -1 {} 200 -1 1 1 1 1 1 1 -1 -1\n"
    jobs = [job.format(n, 60 * n, size, size) for n, size in enumerate((1, 2, 99, 4, 99, 1), 1)]
    log, other = tmp_path / "log.swf", tmp_path / "other.swf"
    log.write_text("".join([*jobs, "7 broken\n", "8 420 0 -1 4 -1 -1 4 200 -1 0 1 1 1 1 1 -1 -1\n"]))
    other.write_text("".join(jobs[:2]))
    file = tmp_path / "campaign.yaml"
    file.write_text(
        "processors: 8\npolicies: [fcfs]\nworkloads:\n"
        f"- {{label: log, trace: {log}, arrival_factors: [1, 0.5]}}\n- {{label: again, trace: {log}}}\n"
        f"- {{label: other, trace: {other}}}\n"
    )
    ran = headway("compare", file, "--out", tmp_path / "out", "--workers", 1)
    # So small a log breaks rules, which are judged after it was looked at.
    assert ran.code == 2 and "rules are broken" in ran.err
    said = [line for line in ran.err.splitlines() if line.startswith(str(tmp_path / "log.swf"))]
    assert [line.removeprefix(f"{log}: ") for line in said] == [
        "1 line skipped: too few fields (line 7: expected 18 numbers, found 2 in '7 broken')",
        "2 jobs left out, first job 3: larger than the pool (99 of 8 processors)",
        "1 job left out, job 8: unknown runtime (-1)",
    ]
    assert str(other) not in ran.err


def test_compare_with_an_energy_profile_shows_energy_in_kilowatt_hours(
    headway: Headway, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    file = tmp_path / "energy.yaml"
    file.write_text(CAMPAIGN + "energy: present-day\n")
    ran = headway("compare", file, "--out", tmp_path / "out", "--workers", 1)
    assert ran.code == 0, ran.err
    assert "energy, kWh" in ran.out and "peak power, kW" in ran.out
    head, *lines = (tmp_path / "out" / "rows.csv").read_text().splitlines()
    joules = [float(line.split(",")[head.split(",").index("energy")]) for line in lines]
    # 64 idle processors draw 51 W, and busy ones 307 W, for two days and more.
    assert all(0.8 * 64 * 86400 < found < 4.8 * 64 * 86400 * 5 for found in joules)


def test_compare_without_its_file_is_the_users_mistake(headway: Headway, tmp_path: Path) -> None:
    ran = headway("compare", tmp_path / "none.yaml")
    assert ran.code == 2
    assert "none.yaml: the campaign cannot be read" in ran.err


def test_tune_finds_the_best_value(headway: Headway, tmp_path: Path) -> None:
    ran = headway(
        "tune", "delayed-los", "--workload", "month", "--set", "days=2", "--processors", 64, "--seeds", 2,
        "--values", "0..2", "--workers", 1, "--out", tmp_path / "out",
    )  # fmt: skip
    assert ran.code == 0, ran.err
    assert "best for mean wait: max_skips: " in ran.out
    assert "← best" in ran.out
    assert (tmp_path / "out" / "tuning.png").is_file()
    assert len((tmp_path / "out" / "rows.csv").read_text().splitlines()) == 1 + 2 * (3 + 1)


def test_tune_for_a_trace_takes_the_machine_from_its_header(headway: Headway, trace: Path) -> None:
    ran = headway("tune", "delayed-los", "--trace", trace, "--values", "0,7", "--workers", 1)
    assert ran.code == 0, ran.err
    assert "max_skips=7" in ran.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["delayed-los"], "either --trace FILE or --workload MODEL"),
        (["delayd-los", "--workload", "month"], "Did you mean 'delayed-los'"),
        (["easy", "--workload", "month"], "names no option to tune"),
        (["delayed-los", "--workload", "month", "--option", "skips"], "has no option 'skips'"),
        (["delayed-los", "--workload", "month", "--values", "1-3"], "expected values such as 1..20"),
        (["delayed-los", "--workload", "month", "--set", "days"], "expected KEY=VALUE"),
        (["delayed-los", "--workload", "moth", "--seeds", "1", "--workers", "1"], "month"),
    ],
)
def test_tunes_mistakes(headway: Headway, arguments: list[str], message: str) -> None:
    ran = headway("tune", *arguments)
    assert ran.code == 2
    assert message in " ".join(ran.err.split())


def test_reproduce_lists_what_it_can(headway: Headway) -> None:
    ran = headway("reproduce")
    assert ran.code == 0
    assert "los: Delayed-LOS, Hybrid-LOS and elastic commands" in ran.out


def test_reproduce_names_the_nearest(headway: Headway) -> None:
    ran = headway("reproduce", "loss")
    assert ran.code == 2
    assert "Did you mean 'los'" in ran.err


@pytest.mark.long
def test_reproduce_gives_every_claim_a_verdict(
    headway: Headway, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(los, "JOBS", 40)
    monkeypatch.setattr(los, "MANY_JOBS", 80)
    monkeypatch.delenv("HEADWAY_TRACES", raising=False)
    out = tmp_path / "out"
    ran = headway("reproduce", "los", "--seeds", 2, "--workers", 1, "--out", out)
    assert ran.code == 0, ran.err
    claims = (out / "claims.md").read_text().splitlines()
    assert "`headway reproduce los --seeds 2`" in claims[2]
    cells = [line.split("|") for line in claims if line.startswith("| Fig")]
    assert {cell[-3].strip() for cell in cells} <= {"yes", "no", "in part", "not run"}
    assert {cell[-2].split(":")[0].strip() for cell in cells} <= {"-", "as published", "smaller", "larger"}
    for figure in ("figure-5", "figure-6", "figure-7", "figure-9", "figure-10", "figure-11-batch"):
        assert (out / f"{figure}.png").is_file()
        assert (out / f"{figure}.csv").is_file()
    assert any("no SDSC log at hand" in line for line in claims)


CAMPAIGNS = sorted((Path(__file__).parents[3] / "etc" / "campaigns").glob("*.yaml"))


@pytest.mark.parametrize("file", CAMPAIGNS, ids=lambda file: file.stem)
def test_the_campaigns_that_ship_keep_every_rule_on_their_definition_and_workloads(
    headway: Headway, file: Path
) -> None:
    ran = headway("lint-experiment", file, "--strict")
    assert ran.code == 0, ran.err
    assert "0 broken or not answered" in " ".join(ran.out.split())


def test_compare_says_which_rules_were_kept_and_lint_says_the_same_of_the_results(
    headway: Headway, campaign: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "300")
    out = tmp_path / "out"
    ran = headway("compare", campaign, "--out", out, "--workers", 1)
    assert ran.code == 0, ran.err
    assert re.search(r"27 +broken +exceedingly short workloads: month, 0.5, fcfs: \d+ jobs measured", ran.out)
    assert re.search(r"19 +kept +no queue management to compare with: 1 of 2 policies backfill", ran.out)
    assert re.search(r"month +0.8 +easy +mean wait +[+-]?[\d.]+ ± [\d.]+ +\d of 2", ran.out)
    # Times as a dry run writes them.
    assert re.search(r"month +0.8 +fcfs.* \d+ (s|min|h) .*± \d+", ran.out)
    rules = ran.out[ran.out.index("How far to trust this") :]
    again = headway("lint-experiment", out)
    assert again.code == 0, again.err
    assert again.out == rules
    assert headway("lint-experiment", out, "--strict").code == 2
    found = json.loads((out / "method.json").read_text())
    assert {one["rule"]: one["outcome"] for one in found["rules"]}["27"] == "broken"


def test_compare_refuses_before_it_runs(headway: Headway, campaign: Path, tmp_path: Path) -> None:
    ran = headway("compare", campaign, "--strict", "--out", tmp_path / "out")
    assert ran.code == 2
    assert "7 limited machine usage: method.usage: what is the machine used for" in " ".join(ran.err.split())
    assert not (tmp_path / "out").exists()


def test_compare_refuses_a_log_on_a_machine_that_is_too_small(
    headway: Headway, trace: Path, tmp_path: Path
) -> None:
    file = tmp_path / "small.yaml"
    file.write_text(f"processors: 1\npolicies: [easy]\nworkloads: [{{trace: {trace}}}]\n")
    ran = headway("compare", file, "--out", tmp_path / "out")
    assert ran.code == 2
    assert "17 traces on machines of another size" in ran.err


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "method: {warmup: some}",
            "method.warmup: expected auto, none, such as 500 jobs, or a time such as 2d",
        ),
        ("method: {accept: {25: ''}}", "a reason for rule 25"),
        ("method: {accept: {99: because}}", "found '99'"),
        ("method: {usge: x}", "usge"),
    ],
)
def test_mistakes_in_what_a_campaign_says_of_its_method(
    headway: Headway, campaign: Path, text: str, message: str
) -> None:
    campaign.write_text(CAMPAIGN + text + "\n")
    ran = headway("lint-experiment", campaign, "--definition-only")
    assert ran.code == 2
    assert message in " ".join(ran.err.split())


def test_a_folder_that_holds_something_else(headway: Headway, tmp_path: Path) -> None:
    ran = headway("lint-experiment", tmp_path)
    assert ran.code == 2
    assert "expected the results of headway compare, found no campaign.yaml" in " ".join(ran.err.split())


def test_claims_say_which_rules_their_experiments_break(tmp_path: Path) -> None:
    context = Context(tmp_path, (1, 2), 1, None, lambda name, count: None, lambda count: None, [])
    month = Scenario("month", 0.5, 64, model="month", options={"processors": 64, "days": 1, "load": 0.5})
    context.run("figure-1", Campaign((Variant("fcfs", (PluginConfig("fcfs"),)),), (month,), context.seeds))
    text = broken_rules(context.broken)
    assert "\n- 3 too few workloads: figure-1. 1 model or trace;" in text
    assert "\n- 28 warm-up kept: figure-1. month, 0.5, fcfs: measured from the first job on" in text
    assert "limited machine usage" not in text


def test_reproduce_tells_the_rules_that_a_published_experiment_breaks(
    headway: Headway, tmp_path: Path
) -> None:
    ran = headway("reproduce", "los", "--rules", "--out", tmp_path / "out")
    assert ran.code == 0 and not (tmp_path / "out").exists()
    assert "- 27 exceedingly short workloads: 500 jobs.\n" in ran.out


#: What makes small versions of campaigns that ship: their models' options.
SMALL = {
    "los": {"jobs": 100, "p_small": 0.5, "p_extend": 0.0, "p_reduce": 0.0},
    "policy": {"days": 28, "users": 30, "accounts": 3},
    "thirteen": {"jobs": 3000},
}


@pytest.mark.long
@pytest.mark.parametrize("name", sorted(SMALL))
def test_small_versions_of_campaigns_that_ship_pass_compare_strict(
    headway: Headway, name: str, tmp_path: Path
) -> None:
    file = Path(__file__).parents[3] / "etc" / "campaigns" / f"{name}.yaml"
    plan = yaml.safe_load(file.read_text())
    for work in plan["workloads"]:
        work.update(options=SMALL[name], loads=work["loads"][:1])
    small = tmp_path / "small.yaml"
    small.write_text(yaml.safe_dump({**plan, "seeds": 2}))
    ran = headway("compare", small, "--strict", "--workers", 1, "--out", tmp_path / "out")
    assert ran.code == 0, ran.err


@pytest.mark.long
@pytest.mark.campaign
@pytest.mark.parametrize("file", CAMPAIGNS, ids=lambda file: file.stem)
def test_the_campaigns_that_ship_pass_compare_strict(headway: Headway, file: Path, tmp_path: Path) -> None:
    """Whole: the rules on runs judge long ones otherwise than short ones."""
    ran = headway("compare", file, "--strict", "--out", tmp_path / "out")
    assert ran.code == 0, ran.err
    assert "0 broken or not answered" in " ".join(ran.out.split())


def test_tune_has_no_utilisation_for_a_goal(headway: Headway) -> None:
    ran = headway("tune", "delayed-los", "--workload", "month", "--metric", "utilisation")
    assert ran.code == 2 and "--metric" in ran.err
