"""Rows of emulations as Parquet: a column a metric, null where it has no value."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import pyarrow as arrow
import pyarrow.parquet

from headway.experiment.campaign import Row
from headway.report.atomic import replacing


def write_parquet(path: Path, rows: Sequence[Row]) -> None:
    """Columns ``workload``, ``x``, ``policy``, ``seed``, then the metrics by name. The file is whole or as
    before."""
    columns: dict[str, arrow.Array] = {
        "workload": arrow.array([row.scenario for row in rows], arrow.string()),
        "x": arrow.array([row.x for row in rows], arrow.float64()),
        "policy": arrow.array([row.variant for row in rows], arrow.string()),
        "seed": arrow.array([row.seed for row in rows], arrow.int64()),
    }
    for name in dict.fromkeys(name for row in rows for name in row.values):
        found = [row.values.get(name, math.nan) for row in rows]
        columns[name] = arrow.array([None if math.isnan(v) else v for v in found], arrow.float64())
    with replacing(path) as temporary:
        pyarrow.parquet.write_table(arrow.table(columns), temporary)
