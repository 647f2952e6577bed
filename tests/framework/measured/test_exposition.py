"""The text of metrics: what Prometheus reads is what was measured."""

from __future__ import annotations

import msgspec
import pytest
from full_metrics import FULL
from prometheus_client.openmetrics.parser import text_string_to_metric_families as read_openmetrics
from prometheus_client.parser import text_string_to_metric_families as read_text

from headway.measured.exposition import FAMILIES, exposition
from headway.measured.report import Histogram, Measured


def samples(text: bytes) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in read_text(text.decode())
        for sample in family.samples
    }


def test_every_metric_is_told_where_all_is_known() -> None:
    told = {name for name, _ in samples(exposition(FULL))}
    for family in FAMILIES:
        name = f"{family.name}_bucket" if family.kind == "histogram" else family.name
        assert name in told


def test_what_is_not_known_is_not_told() -> None:
    told = {name for name, _ in samples(exposition(Measured("1", "drive", "c", 1, 0.0)))}
    assert "headway_info" in told
    assert "headway_journal_lag_seconds" not in told
    assert "headway_node_watts" not in told


def test_a_histogram_adds_up() -> None:
    histogram = Histogram((1.0, 10.0), (2, 3, 4), 99.0)
    found = samples(exposition(msgspec.structs.replace(FULL, cycle_seconds=histogram)))
    assert found["headway_cycle_seconds_bucket", (("le", "1.0"),)] == 2
    assert found["headway_cycle_seconds_bucket", (("le", "10.0"),)] == 5
    assert found["headway_cycle_seconds_bucket", (("le", "+Inf"),)] == 9
    assert found["headway_cycle_seconds_count", ()] == 9
    assert found["headway_cycle_seconds_sum", ()] == 99.0


def test_names_are_quoted() -> None:
    odd = 'a"b\\c\nd{}'
    found = samples(exposition(msgspec.structs.replace(FULL, plugin_seconds={odd: 1.5})))
    assert found["headway_plugin_seconds_total", (("plugin", odd),)] == 1.5


def test_openmetrics_is_read_as_such() -> None:
    families = {one.name for one in read_openmetrics(exposition(FULL, openmetrics=True).decode())}
    assert families == {one.name.removesuffix("_total") for one in FAMILIES}


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_names_are_as_prometheus_wants_them(family: object) -> None:
    name, kind = family.name, family.kind  # type: ignore[attr-defined]
    assert name.startswith("headway_")
    assert name.endswith("_total") == (kind == "counter")
    assert not {"job", "job_id", "jobid", "node", "le"} & set(family.labels)  # type: ignore[attr-defined]
