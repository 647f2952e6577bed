"""The paper's Tables 1 and 2, and whether they agree with themselves.

L. F. Goes and others: AnthillSched. JSSPP 2005. Each row: mean, least, largest, standard deviation and
confidence interval over ten workloads of 1,000 jobs, seconds. None: not in the text that was at hand.
"""

from __future__ import annotations

from dataclasses import dataclass

from headway_plugins.pipelines.metrics import normal_interval

WORKLOADS, JOBS = 10, 1000
STRATEGIES = ("AS", "BS", "NOAS", "OAS")


@dataclass(frozen=True)
class Printed:
    """A row of a table."""

    mean: float | None
    least: float | None = None
    largest: float | None = None
    deviation: float | None = None
    low: float | None = None
    high: float | None = None


TABLES: dict[str, dict[str, dict[str, Printed]]] = {
    "light": {
        "execution": {
            "AS": Printed(None, high=2088371.99),
            "BS": Printed(2065463.77, 2029279.84, 2155222.41, 36903.64, 2042591.09, 2088336.45),
            "NOAS": Printed(2065464.68, 2029245.12, 2155317.20, 36930.32, 2042575.47, 2088353.90),
            "OAS": Printed(2065410.48, 2029242.96, 2155136.99, 36896.76, 2042542.06, 2088278.89),
        },
        "idle": {
            "AS": Printed(1189.08, 61.86, 3980.32, 1309.36, 377.54, 2000.61),
            "BS": Printed(1214.08, 57.10, 4070.59, 1321.27, 395.17, 2033.00),
            "NOAS": Printed(1209.70),
            "OAS": Printed(1263.55, 90.19, 4156.01, 1328.39, 440.22, 2086.88),
        },
        "wait": {
            "AS": Printed(9.61, 7.07, 11.82, 1.49, 8.69, 10.53),
            "BS": Printed(7.87, 5.77, 9.32, 1.15, 7.16, 8.59),
            "NOAS": Printed(8.13, 6.01, 10.24, 1.33, 7.30, 8.95),
            "OAS": Printed(4.84, 3.64, 5.89, 0.67, 4.43, 5.25),
        },
        "response": {
            "AS": Printed(189.28, 186.76, 191.46, 1.50, 188.35, 190.21),
            "BS": Printed(162.16, 158.03, 164.50, 2.04, 160.89, 163.42),
            "NOAS": Printed(168.28, 166.28, 170.67, 1.36, 167.44, 169.44),
            "OAS": Printed(107.82, 101.68, 110.65, 2.63, 106.45, 109.19),
        },
    },
    "medium": {
        "execution": {
            "AS": Printed(None, 179401.58, 179807.61, 106.49, 179615.75, 179747.77),
            "BS": Printed(154321.87, 150995.24, 155923.21, 1394.01, 153457.87, 155185.87),
            "NOAS": Printed(160181.04, 159284.49, 161230.22, 548.70, 159840.95, 160521.12),
            "OAS": Printed(103100.88, 97447.90, 106026.05, 2413.90, 101604.76, 104597.01),
        },
        "idle": {
            "AS": Printed(11.40, 0.0, 86.56, 27.22, -5.48, 28.27),
            "BS": Printed(10.42, 0.0, 84.74, 26.52, -6.02, 26.86),
            "NOAS": Printed(21.01, 0.0, 120.53, 39.66, -3.57, 45.60),
            "OAS": Printed(32.59, 0.0, 119.77, 48.37, 2.61, 62.57),
        },
        "wait": {
            "AS": Printed(56660.14, 53618.32, 58737.13, 1442.26, 55766.23, 57554.05),
            "BS": Printed(44165.69, 41342.79, 46325.72, 1612.33, 43166.37, 45165.00),
            "NOAS": Printed(46849.72, 43929.01, 49249.10, 1449.23, 45951.49, 47747.95),
            "OAS": Printed(18721.51, 15228.08, 21785.22, 2032.29, 17461.90, 19981.11),
        },
        "response": {
            "AS": Printed(56839.81, 53798.01, 58916.78, 1442.28, 55945.88, 57733.73),
            "BS": Printed(44319.97, 41497.70, 46481.64, 1613.01, 43320.23, 45319.71),
            "NOAS": Printed(47009.87, 44089.37, 49409.53, 1449.21, 46111.66, 47908.09),
            "OAS": Printed(18824.49, 15325.52, 21891.15, 2033.92, 17563.88, 20085.10),
        },
    },
}  # fmt: skip

#: What follows from them: the mean run time of a job, response minus wait (light and medium agree), seconds;
#: and the squared coefficient of variation of run times with which a queue gives Table 1's waits.
RUN_TIMES = {"AS": 179.67, "BS": 154.29, "NOAS": 160.15, "OAS": 102.98}
VARIATION = {"AS": 0.12, "BS": 0.26, "NOAS": 0.21, "OAS": 0.79}
#: Seconds between arrivals: as printed, and with which queues give Tables 1 and 2.
ARRIVALS = {"published": 6513.8, "light": 2065.5, "medium": 66.1, "heavy": 0.0}


@dataclass(frozen=True)
class Misprint:
    """An end of an interval that does not follow from the mean and the deviation beside it."""

    load: str
    metric: str
    strategy: str
    end: str
    printed: float
    computed: float


def misprints(tolerance: float = 0.02) -> list[Misprint]:
    """The ends of intervals that are off by more than roundings (seconds) explain."""
    found = []
    for load, metrics in TABLES.items():
        for metric, rows in metrics.items():
            for strategy, row in rows.items():
                if row.mean is None or row.deviation is None:
                    continue
                ends = normal_interval(row.mean, row.deviation, WORKLOADS)
                for end, printed, computed in zip(("low", "high"), (row.low, row.high), ends, strict=True):
                    if printed is not None and abs(printed - computed) > tolerance:
                        found.append(Misprint(load, metric, strategy, end, printed, round(computed, 2)))
    return found


def missing_mean(load: str, metric: str, strategy: str) -> float | None:
    """A mean that is not there, from the ends of its interval; None if they are not there either."""
    row = TABLES[load][metric][strategy]
    return None if row.low is None or row.high is None else round((row.low + row.high) / 2, 2)
