"""The witness beside the fence sees what it is there for: each fault in an otherwise good history."""

from __future__ import annotations

from pathlib import Path

import pytest
from fence_witness import ACCEPTED, SUPERSEDED, Witness

#: A leader of epoch 1 holds job 7, another takes over, pins and releases the job; the first is refused.
GOOD = [
    "10.00\tasked\t2002\t0\theadway:lead=1:a",
    "10.50\twrite\t0\t0\t7\theadway:held;epoch=1\t0\theadway:new\t0\t0",
    "11.00\tasked\t2002\t0\theadway:lead=2:b",
    "11.20\twrite\t27182\t0\t7\theadway:pin=n1;epoch=1\t4294967294\theadway:held;epoch=1\t0\t0",
    "11.30\twrite\t0\t0\t7\theadway:pin=n2;epoch=2\t-\theadway:held;epoch=1\t0\t0",
    "11.40\twrite\t0\t0\t7\theadway:release;epoch=2\t1\theadway:pin=n2;epoch=2\t0\t0",
    "11.60\twrite\t0\t0\t7\t-\t-\theadway:pin=n2;epoch=2\t4294901757\t0",
]


def judged(directory: Path, *lines: str) -> Witness:
    path = directory / "witness"
    path.write_text("".join(f"{line}\n" for line in lines))
    witness = Witness(path)
    witness.look()
    return witness


def test_a_good_history(tmp_path: Path) -> None:
    verdict = judged(tmp_path, *GOOD).verdict
    assert not verdict.wrong
    assert [(write.code, write.epoch) for write in verdict.late] == [(SUPERSEDED, 1)]
    assert verdict.released == {"7": [2]} and verdict.pinned == {"7": "headway:pin=n2;epoch=2"}
    assert verdict.taken == {1: 1, 2: 2}
    assert verdict.wrote[2] - verdict.heard[2] == pytest.approx(0.3, abs=0.05)


def test_half_a_line_is_read_when_it_is_whole(tmp_path: Path) -> None:
    witness = judged(tmp_path, *GOOD[:2])
    with witness.path.open("a") as file:
        file.write(GOOD[2][:9])
        file.flush()
        assert witness.look().highest == 1
        file.write(GOOD[2][9:] + "\n")
        file.flush()
        assert witness.look().highest == 2


def test_a_question_of_a_user_is_no_leader(tmp_path: Path) -> None:
    assert judged(tmp_path, "10.00\tasked\t2002\t1000\theadway:lead=99:x").verdict.highest == 0


FAULTS = [
    (3, "27182", str(ACCEPTED), "a write of an older one was taken"),
    # It was refused, and is there.
    (4, "headway:held;epoch=1", "headway:pin=n1;epoch=1", "has the mark 'headway:pin=n1;epoch=1'"),
    (4, "\t0\t0", "\t4294901757\t0", "without a release"),
    (4, "write\t0", "write\t27182", "refused although no newer epoch was heard"),
    (5, "headway:release;epoch=2", "-", "a write without an epoch"),
    (6, "4294901757\t0", "4294901757\t1", "started again 1 times"),
]  # fmt: skip


@pytest.mark.parametrize(("place", "old", "new", "said"), FAULTS)
def test_a_fault_is_seen(tmp_path: Path, place: int, old: str, new: str, said: str) -> None:
    lines = list(GOOD)
    head, found, tail = lines[place].rpartition(old)
    assert found
    lines[place] = head + new + tail
    verdict = judged(tmp_path, *lines).verdict
    assert any(said in wrong for wrong in verdict.wrong), verdict.wrong
