"""What ``headway dry-run`` and ``headway analyze`` say of how far they may be trusted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from commandline import Headway

USERS_MISTAKE = 2


def rules_of(path: Path) -> dict[str, dict[str, Any]]:
    return {one["rule"]: one for one in json.loads(path.read_text())["method"]["rules"]}


def test_a_dry_run_says_what_it_breaks(headway: Headway, trace: Path, tmp_path: Path) -> None:
    ran = headway("dry-run", "--trace", trace, "--out", "out")
    assert ran.code == 0
    assert "How far to trust this: " in ran.out
    assert "exceedingly short workloads" in ran.out
    assert "without warm-up and cool-down" in ran.out
    found = rules_of(tmp_path / "out/metrics.json")
    assert found["27"]["outcome"] == "broken"
    assert found["27"]["findings"][0]["numbers"]["measured jobs"] < 40
    assert {"2", "5", "14", "15", "17", "25", "26", "28", "29"} <= found.keys()
    assert not found.keys() & {"3", "19", "31", "E1"}
    assert "How far to trust this" in (tmp_path / "out/report.html").read_text()


def test_an_analysis_says_what_an_experiment_would_break(
    headway: Headway, trace: Path, tmp_path: Path
) -> None:
    ran = headway("analyze", trace, "--processors", 32, "--out", "out")
    assert ran.code == 0
    assert "traces on machines of another size" in ran.out
    found = rules_of(tmp_path / "out/analysis.json")
    assert found["17"]["findings"][0]["message"] == "32 processors, recorded on 16"
    assert found["17"]["findings"][0]["numbers"]["own"] == 16
    assert "25" not in found


def test_a_model_is_judged_as_one(headway: Headway, tmp_path: Path) -> None:
    ran = headway("dry-run", "--workload", "lublin", "--set", "jobs=300", "--out", "out")
    assert ran.code == 0
    found = rules_of(tmp_path / "out/metrics.json")
    assert found["15"]["outcome"] == "broken" and "100% exact" in found["15"]["findings"][0]["message"]
    assert found["5"]["outcome"] == "does not apply"


def test_a_changed_load_is_told(headway: Headway, trace: Path, tmp_path: Path) -> None:
    headway("dry-run", "--trace", trace, "--scale-sizes", 1.5, "--out", "out")
    found = rules_of(tmp_path / "out/metrics.json")["18"]
    assert found["outcome"] == "broken"
    assert found["findings"][0]["numbers"]["factor of sizes"] == 1.5


@pytest.mark.parametrize("command", [("dry-run", "--trace"), ("analyze",)])
def test_strictness_refuses_and_names_the_rules(
    headway: Headway, trace: Path, command: tuple[str, ...]
) -> None:
    ran = headway(*command, trace, "--strict-method")
    assert ran.code == USERS_MISTAKE
    assert "broken or not answered (--strict-method)" in ran.err
    assert "--accept RULE=REASON" in ran.err


def test_a_dry_run_is_refused_for_its_workload_before_it_runs(
    headway: Headway, trace: Path, tmp_path: Path
) -> None:
    ran = headway("dry-run", "--trace", trace, "--scale-sizes", 1.5, "--strict-method", "--out", "out")
    assert ran.code == USERS_MISTAKE
    assert ran.out == ""
    assert not list((tmp_path / "out").iterdir())


def accepting(rules: set[str]) -> list[str]:
    return [word for name in sorted(rules) for word in ("--accept", f"{name}=known")]


def test_what_is_accepted_is_not_refused_and_its_reason_is_printed(
    headway: Headway, trace: Path, tmp_path: Path
) -> None:
    headway("dry-run", "--trace", trace, "--out", "out")
    bad = {
        name
        for name, one in rules_of(tmp_path / "out/metrics.json").items()
        if one["outcome"] in ("broken", "refused", "not stated")
    }
    ran = headway("dry-run", "--trace", trace, "--strict-method", *accepting(bad))
    assert ran.code == 0, ran.err
    assert " ".join(ran.out.split()).count("known") == len(bad)


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ("14", "expected a rule and a reason, such as 14=included, found '14'"),
        ("14= ", "expected a rule and a reason"),
        ("3=one is enough", "expected a rule (1, 2, 4, 5,"),
        ("99=why not", "found '99'"),
    ],
)
def test_what_cannot_be_accepted(headway: Headway, trace: Path, said: str, message: str) -> None:
    for command in (("dry-run", "--trace"), ("analyze",)):
        ran = headway(*command, trace, "--accept", said)
        assert ran.code == USERS_MISTAKE
        assert f"--accept: {message}" in ran.err or message in ran.err
        assert ran.out == ""


def test_a_forecast_is_no_experiment(headway: Headway, pretended_slurm: Any) -> None:
    ran = headway("dry-run", "-c", pretended_slurm(), "--from-cluster", "--strict-method")
    assert ran.code == USERS_MISTAKE
    assert "--strict-method goes with --trace, not with --from-cluster" in ran.err
