"""docs/rules.md names every rule, docs/experiments.md every key of the method, and their examples run."""

from __future__ import annotations

import re
from pathlib import Path

from headway.experiment.campaign import Campaign, Scenario, Variant
from headway.experiment.definition import MethodConfig, load_campaign
from headway.experiment.facts import WorkloadFacts
from headway.experiment.rulebook import RULES, Evidence, Kind, Outcome, Rule, judge
from headway.plugins import PluginConfig

DOCS = Path(__file__).parents[2] / "docs"
CAMPAIGN, RULE_BOOK = ((DOCS / name).read_text(encoding="utf-8") for name in ("experiments.md", "rules.md"))


def block(page: str, kind: str) -> str:
    return re.search(rf"^```{kind}\n(.*?)^```", page, re.MULTILINE | re.DOTALL)[1]


def test_the_table_has_every_rule_as_it_is():
    rows = [
        re.split(r" *\| *", row)
        for row in re.findall(r"^\| *((?:[EG]?\d+) .*?) *\|$", RULE_BOOK, re.MULTILINE)
    ]
    written = {row[0]: (row[1], row[2], row[4], int(row[5])) for row in rows}
    assert written == {one.name: (one.title, one.keep, str(one.stage), one.severity) for one in RULES}


def test_every_key_of_the_method_is_there():
    for name in MethodConfig.model_fields:
        assert f"`{name}`" in CAMPAIGN


def test_the_campaign_is_one(tmp_path: Path):
    file = tmp_path / "campaign.yaml"
    file.write_text(block(CAMPAIGN, "yaml"))
    plan = load_campaign(file)
    assert plan.method.accept == {"3": "only this site's own workload is of interest"}
    assert [scenario.target_load for scenario in plan.scenarios[2:]] == [0.7, 0.8]
    assert plan.size() == 2 * 4 * 10


def test_the_rule_of_a_site_works():
    names: dict[str, object] = {}
    exec(compile(block(RULE_BOOK, "python"), "weekend.py", "exec"), names)
    weekend = names["weekend"]
    assert isinstance(weekend, Rule)
    facts = WorkloadFacts(
        "w", 1.0, 1, False, 10, 86400.0, 60.0, None, None, None, None, None, 1.0, None, None, None, "", 0,
        0, 0,
        0.0, 0.0, 0.0, 8, None, 0, "", 0.0, 0.0, None,
    )  # fmt: skip
    plan = Campaign((Variant("easy", (PluginConfig("easy"),)),), (Scenario("w", 1.0, 8, model="m"),), (1,))
    (one,) = judge(Evidence(plan, (), (facts,)), [weekend])
    assert one.outcome is Outcome.BROKEN and one.findings[0].kind is Kind.WARN
