"""etc/monitoring and docs/operators/metrics.md: what they name exists, and Prometheus' own tool reads it."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from full_metrics import FULL

from headway.measured.exposition import FAMILIES, exposition
from headway.measured.measures import MOST_PAIRS, MOST_USERS

ROOT = Path(__file__).parents[2]
MONITORING = ROOT / "etc" / "monitoring"
PAGE = (ROOT / "docs" / "operators" / "metrics.md").read_text(encoding="utf-8")
RULES = MONITORING / "headway.rules.yml"
TESTS = MONITORING / "headway.rules.test.yml"
KINDS = {family.name: family for family in FAMILIES}

with_promtool = pytest.mark.skipif(
    shutil.which("promtool") is None, reason="no promtool: Debian's package prometheus is not installed"
)


def promtool(*words: str, given: bytes = b"", where: Path = MONITORING) -> str:
    ran = subprocess.run(["promtool", *words], input=given, cwd=where, capture_output=True, check=False)
    said = (ran.stdout + ran.stderr).decode()
    assert ran.returncode == 0, said
    return said


def rules() -> list[dict[str, Any]]:
    (group,) = yaml.safe_load(RULES.read_text(encoding="utf-8"))["groups"]
    found: list[dict[str, Any]] = group["rules"]
    return found


def panels() -> Iterator[dict[str, Any]]:
    yield from json.loads((MONITORING / "headway.dashboard.json").read_text(encoding="utf-8"))["panels"]


def section(title: str) -> str:
    return PAGE.split(f"## {title}\n")[1].split("\n## ")[0]


def metrics_in(expression: str) -> set[str]:
    """The metrics that an expression names, without the suffixes of histograms."""
    found = set(re.findall(r"\bheadway_\w+", expression))
    return {re.sub(r"_(bucket|count|sum)$", "", name) for name in found}


def labels_in(expression: str) -> Iterator[tuple[str, set[str]]]:
    """(Metric, labels that are selected of it)."""
    for name, selected in re.findall(r"\b(headway_\w+)\{([^}]*)\}", expression):
        yield re.sub(r"_(bucket|count|sum)$", "", name), set(re.findall(r'(\w+)\s*[=!]~?"', selected))


EXPRESSIONS = [rule["expr"] for rule in rules()] + [
    target["expr"] for panel in panels() for target in panel["targets"]
]


def test_the_page_explains_every_metric_with_its_kind_and_labels() -> None:
    rows = re.findall(r"^\| `(headway_\w+)` \| (\w+) \| ?(.*?) ?\| (\S.*) \|$", section("All metrics"), re.M)
    told = {name: (kind, tuple(re.findall(r"`(\w+)`", labels))) for name, kind, labels, _ in rows}
    assert told == {family.name: (family.kind, family.labels) for family in FAMILIES}
    assert [name for name, *_ in rows] == [family.name for family in FAMILIES]


def test_the_page_tells_the_bounds() -> None:
    assert f"at most {MOST_PAIRS} pairs of pool and QOS" in PAGE
    assert f"the {MOST_USERS} users with the most" in PAGE


def test_the_page_says_what_to_do_about_each_alert() -> None:
    rows = re.findall(r"^\| `(Headway\w+)` \| \S.* \| \S.* \|$", section("The alerts"), re.M)
    assert rows == [rule["alert"] for rule in rules()]


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_every_metric_and_label_that_is_named_exists(expression: str) -> None:
    assert metrics_in(expression) <= set(KINDS)
    for name, labels in labels_in(expression):
        assert labels <= {*KINDS[name].labels, "instance", "job"}
    histograms = {name for name, family in KINDS.items() if family.kind == "histogram"}
    plain = {name for name in metrics_in(expression) if re.search(rf"\b{name}\b(?!_)", expression)}
    assert not plain & histograms


def test_every_alert_has_a_test_in_which_it_fires_and_one_in_which_it_does_not() -> None:
    cases = [
        case
        for test in yaml.safe_load(TESTS.read_text(encoding="utf-8"))["tests"]
        for case in test["alert_rule_test"]
    ]
    fires = {case["alertname"] for case in cases if case["exp_alerts"]}
    silent = {case["alertname"] for case in cases if not case["exp_alerts"]}
    assert fires == silent == {rule["alert"] for rule in rules()}


def test_panels_stand_side_by_side() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in panels():
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not taken & cells
        assert place["x"] + place["w"] <= 24
        taken |= cells


@with_promtool
def test_promtool_reads_the_rules() -> None:
    assert f"{len(rules())} rules found" in promtool("check", "rules", RULES.name)


@with_promtool
def test_each_alert_fires_when_it_should() -> None:
    assert "SUCCESS" in promtool("test", "rules", TESTS.name)


@with_promtool
def test_the_alerts_tests_see_a_rule_that_is_wrong(tmp_path: Path) -> None:
    text = RULES.read_text(encoding="utf-8")
    (tmp_path / RULES.name).write_text(text.replace("> 300", "> 3000"), encoding="utf-8")
    shutil.copy(TESTS, tmp_path)
    with pytest.raises(AssertionError, match="HeadwayLoopHangs"):
        promtool("test", "rules", TESTS.name, where=tmp_path)


@with_promtool
def test_promtool_finds_nothing_wrong_with_the_metrics() -> None:
    assert promtool("check", "metrics", given=exposition(FULL)) == ""
