"""The statements of the paper on pitfalls: verdicts from rows, and the part that needs no trace."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from headway.errors import UserError
from headway.experiment.campaign import Row
from headway.experiment.reproduction import Context
from headway.workload import Column, Trace
from headway.workload.trace import WIDTH
from headway_plugins.reproductions.pitfalls import (
    PitfallsReproduction,
    claim_of_feedback,
    claim_of_windows,
    claims_of_load,
    claims_of_looks,
    claims_of_whole_logs,
    prepared,
)


def row(scenario: str, variant: str = "EASY", x: float = 0.8, **values: float) -> Row:
    return Row(scenario, x, variant, 1, {name.replace("_", " "): value for name, value in values.items()})


def test_without_traces_only_saturation_is_run(tmp_path: Path) -> None:
    """Pitfall 25 (statement P2): 49.5 s of 100 jobs, 99.5 s of 200."""
    context = Context(tmp_path, (1, 2), 1, None, lambda name, count: None, lambda count: None, [])
    claims = PitfallsReproduction(logs="KTH").run(context)
    assert claims[0].measured == "offered load 1.1: mean wait 49.5 s of 100 jobs, 99.5 s of 200"
    assert claims[0].holds == "yes"
    assert {claim.holds for claim in claims[1:]} == {"not run"}
    assert "KTH" in claims[2].measured


@pytest.mark.parametrize("settings", [{"logs": "KTH,CTX"}, {"windows": 0}, {"windows": "many"}])
def test_settings_that_are_none(settings: dict[str, object]) -> None:
    with pytest.raises(UserError, match="--set"):
        PitfallsReproduction(**settings)  # type: ignore[arg-type]


def test_runtimes_are_cut_to_estimates_that_are_there() -> None:
    records = np.full((3, WIDTH), -1.0)
    records[:, Column.REQUESTED] = 1
    records[:, Column.RUNTIME] = 100, 100, 0
    records[:, Column.ESTIMATE] = 60, -1, 60
    assert prepared(Trace("t", records=records, line_numbers=np.arange(3))).records[
        :, Column.RUNTIME
    ].tolist() == [60, 100]


def load_rows(**waits: float) -> list[Row]:
    common = {
        "offered load": 0.8, "slowdown of means": 1.4, "unfinished at last submission": 96.0,
        "processors of unfinished": 19.7, "queued deficit": 0.04,
    }  # fmt: skip
    names = {
        "arrivals": "times between submissions",
        "x1": "runtime x 1",
        "x2": "runtime x 2",
        "x11": "runtime x 11",
    }
    return [
        Row(names.get(name, name), 0.8, "EASY", 1, {"mean wait": wait, **common})
        for name, wait in waits.items()
    ]


def test_load_and_estimates_are_judged_by_their_waits() -> None:
    waits = {"arrivals": 3766.0, "runtimes": 4605.0, "sizes": 6610.0, "smaller": 6977.0}
    rows = load_rows(**waits, x1=7930.0, x2=4543.0, x11=3688.0)
    cut = [row("runtimes", first_measured=250.0, measured_jobs=4600.0, mean_wait=4700.0)]
    claims = claims_of_load(rows, cut, 1.223, "smaller", 9.2)
    assert [claim.holds for claim in claims] == ["yes", "yes", "yes", "yes", "yes", "in part"]
    assert "(+76%; offered 0.800)" in claims[0].measured
    rows = load_rows(**{**waits, "sizes": 3770.0, "runtimes": 5000.0}, x1=5001.0, x2=5100.0, x11=3688.0)
    assert [claim.holds for claim in claims_of_load(rows, cut, 1.223, "smaller", 9.2)][:4] == [
        "no",
        "no",
        "no",
        "in part",
    ]


def test_whole_logs_and_windows_are_judged() -> None:
    whole = row(
        "KTH", offered_load=0.7, achieved_load=0.7, mean_wait=100.0, half_width_of_batches=20.0,
        correlation_of_batches=0.1, share_waiting=0.5,
    )  # fmt: skip
    whole.values.update({
        "top 1 % of bounded slowdown": 0.4, "mean bounded slowdown": 40.0, "median bounded slowdown": 1.0,
        "geometric mean bounded slowdown": 3.0, "mean wait prime time": 120.0, "mean wait other time": 80.0,
    })  # fmt: skip
    claims = claims_of_whole_logs([whole])
    assert [claim.holds for claim in claims] == ["yes"] * 5
    assert "prime time, and of others: KTH 2 min 00 s, 1 min 20 s" in claims[3].measured
    windows = [
        row("KTH", variant, x, mean_wait=wait, mean_bounded_slowdown=4.0)
        for variant, x, wait in (
            ("EASY", 1.0, 100.0), ("conservative", 1.0, 101.0),
            ("EASY", 2.0, 100.0), ("conservative", 2.0, 150.0),
        )
    ]  # fmt: skip
    claim = claim_of_windows(windows)
    assert claim.holds == "yes" and "in 2 windows" in claim.measured and "KTH +1% to +50%" in claim.measured


def test_feedback_is_judged_beside_the_open_replay() -> None:
    waits = {"KTH": (100.0, 150.0), "KTH, chains": (60.0, 75.0)}
    rows = [
        row(name, variant, 1.0, mean_wait=wait)
        for name, both in waits.items()
        for variant, wait in zip(("EASY", "conservative"), both, strict=True)
    ]
    claim = claim_of_feedback(rows)
    assert claim.holds == "yes"
    assert "KTH 1 min 40 s and 1 min 00 s (conservative against EASY +50% and +25%)" in claim.measured


def test_models_are_judged_beside_logs() -> None:
    def of(name: str, kind: str, days: float, powers: float) -> Row:
        values = {"idc_day": days, "powers_of_two": powers, "estimated": 1.0}
        return Row(name, 0.0, kind, 1, values)

    rows = [of("ccr", "model", 0.7, 0.9), of("KTH", "log", 26.0, 0.74)]
    assert [claim.holds for claim in claims_of_looks(rows)] == ["yes", "yes", "-"]
    rows.append(of("wild", "model", 90.0, 0.9))
    assert claims_of_looks(rows)[0].holds == "in part"


def test_p15_constants_are_stated_and_the_logs_with_estimates_counted() -> None:
    values = {"idc_day": 26.0, "powers_of_two": 0.74}
    rows = [Row(name, 1.0, "log", 1, {**values, "estimated": part}) for name, part in (("a", 0.9), ("b", 0))]
    claim = claims_of_looks(rows)[-1]
    assert claim.where == "Pitfalls 15, 16, 24" and claim.holds == "-"
    assert claim.measured.startswith("1 of the 2 logs at hand have estimates; rule 16 warns above 4 levels")
