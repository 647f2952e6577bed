"""Several starts in one ``qrun``: which are joined, and what became of each."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from pretended import result

from headway_adapters.pbs.joined import MOST_JOBS, apart, join

ON_B = ("qrun", "-H", "(pbsb:ncpus=1)")
ON_C = ("qrun", "-H", "(pbsc:ncpus=1)")
JOBS = ("1.pbsa", "2[7].pbsa", "3.pbsa")
UNKNOWN_NODE = "qrun: Unknown node  (pbsb:ncpus=1)"


def test_starts_on_the_same_vnodes_are_one_command() -> None:
    joined = join([("a", (*ON_B, "1.pbsa")), ("b", (*ON_C, "2.pbsa")), ("c", (*ON_B, "3[4].pbsa"))])
    assert [(one.argv, one.starts) for one in joined] == [
        ((*ON_B, "1.pbsa", "3[4].pbsa"), ("a", "c")),
        ((*ON_C, "2.pbsa"), ("b",)),
    ]


def test_a_command_takes_so_many_jobs_and_no_more() -> None:
    joined = join([(number, (*ON_B, f"{number}.pbsa")) for number in range(2 * MOST_JOBS + 1)])
    assert [len(one.starts) for one in joined] == [MOST_JOBS, MOST_JOBS, 1]
    assert [at for one in joined for at in one.starts] == list(range(2 * MOST_JOBS + 1))


def became(rc: int, *stderr: str, **state: Any) -> list[str]:
    """What became of each job, as the words of the table."""
    whole = result((*ON_B, *JOBS), rc=rc, stderr="".join(f"{line}\n" for line in stderr))
    whole = msgspec.structs.replace(whole, **state)
    return [
        "runs" if one.ok else "no answer" if one.unanswered else one.complaint()
        for one in apart(whole, JOBS)
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("stderr", "expected"),
    [
        # As a real qrun says it: it goes on behind a refused job, and ends with 2.
        (
            ["qrun: Unknown Job Id 2[7].pbsa"],
            ["runs", "qrun: Unknown Job Id 2[7].pbsa", "runs"],
        ),
        (
            [
                "qrun: Request invalid for state of job 1.pbsa",
                "qrun: Resource temporarily unavailable 3.pbsa",
            ],
            [
                "qrun: Request invalid for state of job 1.pbsa",
                "runs",
                "qrun: Resource temporarily unavailable 3.pbsa",
            ],
        ),
        # Of vnodes that it does not know it names no job: once for each that it came to.
        ([UNKNOWN_NODE] * 3, [UNKNOWN_NODE] * 3),
        (
            ["qrun: Unknown Job Id 1.pbsa", UNKNOWN_NODE, UNKNOWN_NODE],
            ["qrun: Unknown Job Id 1.pbsa", UNKNOWN_NODE, UNKNOWN_NODE],
        ),
        # One refusal about one of two jobs: the next look tells which.
        (
            ["qrun: Unknown Job Id 1.pbsa", "qrun: something new"],
            ["qrun: Unknown Job Id 1.pbsa", "no answer", "no answer"],
        ),
        # The command itself could not be run.
        (["sh: qrun: not found"], ["sh: qrun: not found"] * 3),
        ([], ["qrun ended with status 2"] * 3),
    ],
)
def test_each_job_has_its_own_answer(stderr: list[str], expected: list[str]) -> None:
    assert became(2, *stderr) == expected


def test_all_that_were_asked_for_without_a_word_run() -> None:
    assert became(0) == ["runs"] * 3


def test_of_a_command_without_an_answer_only_what_it_named_was_refused() -> None:
    told = became(124, "qrun: Unknown Job Id 1.pbsa", timed_out=True)
    assert told == ["qrun: Unknown Job Id 1.pbsa", "no answer", "no answer"]
