"""What ``showbf`` of Maui and of Moab says, as their manuals and a site's guide to users show it."""

from __future__ import annotations

import pytest

from headway.adapter.user_side import Window
from headway.errors import Failure
from headway_adapters.user_side import showbf

ENDLESS = float("inf")
#: The guide of a site that runs Maui's successor; two windows of Maui's.
TWO = """
backfill window (user: 'vsc30001' group: 'vsc30001' partition: ALL) Wed Mar 18 10:31:02
323 procs available for      21:04:59
136 procs available for   13:19:28:58
"""
#: Maui's manual.
ENDLESS_ONE = """
backFill window (user: 'john' group: 'staff' partition: ALL) Mon Feb 16 08:28:54

partition ALL:
  33 procs available with no time limit
"""
#: As Maui's source prints it.
PARTITIONS = """backfill window (user: 'root' group: 'root' partition: ALL) Tue Mar  8 16:15:01

 16 procs available for      19:09:53
  6 procs available with no timelimit

partition A:
  6 procs available with no timelimit

partition B:
 10 procs available for      19:09:53


"""
NONE = """
backfill window (user: 'john' group: 'staff' partition: ALL) Thu Jun 18 16:03:04

no procs available
"""
#: Moab's manual.
TABLE = """
Partition     Tasks  Nodes   StartOffset      Duration       StartDate
---------     -----  -----  ------------  ------------  --------------
ALL               3      3      00:00:00      INFINITY  11:32:38_08/19
ReqID=0
ClusterA          1      1      00:00:00      INFINITY  11:32:38_08/19
ReqID=0
ClusterB          2      2      00:00:00      INFINITY  11:32:38_08/19
ReqID=0
"""
#: The columns of an earlier version; the last line, of -D, begins later.
EARLIER = """
Partition      Tasks  Nodes      Duration   StartOffset       StartDate
---------     ------  -----  ------------  ------------  --------------
base              64      8       8:31:04      00:00:00  14:23:31_08/19
base              16      2      INFINITY      00:00:00  14:23:31_08/19
base             128     16      INFINITY    1:08:31:04  22:54:35_08/20
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (TWO, [(323, 75899.0), (136, 1193338.0)]),
        (ENDLESS_ONE, [(33, ENDLESS)]),
        (PARTITIONS, [(16, 68993.0), (6, ENDLESS)]),
        (NONE, []),
        (TABLE, [(3, ENDLESS)]),
        (EARLIER, [(64, 30664.0), (16, ENDLESS)]),
        (TABLE.splitlines()[1], []),
        ("backfill window (user: 'a' group: 'b' partition: X) now\n 1 proc available for 5:00\n", [(1, 300)]),
    ],
)  # fmt: skip
def test_windows_are_read(text: str, expected: list[tuple[int, float]]) -> None:
    assert list(showbf.windows(text)) == [Window(processors, seconds) for processors, seconds in expected]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", "found ''"),
        ("ERROR:    cannot parse request\n", "found 'ERROR:    cannot parse request'"),
        (TWO.replace("323 procs", "some procs"), "found 'some procs available"),
        (TWO.replace("21:04:59", "soon"), "soon"),
        (TABLE.replace("  3      3  ", "  x      3  "), "x"),
        (TABLE.replace("ALL ", "ClusterC "), "of all of them|of all partitions"),
        (EARLIER.replace("8:31:04 ", "forever "), "forever"),
        (EARLIER + "base 3\n", "found 'base 3'"),
    ],
)
def test_anything_else_is_no_answer(text: str, found: str) -> None:
    with pytest.raises(Failure, match=found):
        showbf.windows(text)
