"""No text of any user changes what is read about any other job, in any format.

The listings are written as a real server writes them (``written_lsf``, held against recordings here), with
anything in every text that a user chooses, line breaks too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from recorded_lsf import at, output
from written_lsf import SEPARATOR, Job, WrittenLsf, fields, history, record, table

from headway_adapters.lsf import LsfAdapter

NOW = at(2, 38, 33, day=22)
#: Bob's jobs: one waits, one runs, one is on its way back to the queue, one has ended.
BOBS = (
    Job(180, "bob", slots=2, requirement="span[hosts=1]", dependency="ended(181)"),
    Job(181, "bob", "RUN", slots=2), Job(182, "bob", "EXIT", host="lsfc"),
    Job(183, "bob", "EXIT", host="lsfd"),
)  # fmt: skip
REQUEUED = frozenset({182})


def rstripped(text: str) -> list[str]:
    return [line.rstrip() for line in text.strip("\n").splitlines()]


def test_what_is_written_here_is_what_a_real_server_wrote() -> None:
    job = Job(180, "alice", "EXIT", slots=2)
    assert table([job]) == output("bjobs_requeue_exit_wide")
    assert rstripped(record(job)) == rstripped(output("bjobs_requeue_exit_UF"))
    pending = record(replace(job, stat="PEND"))
    assert rstripped(pending) == rstripped(output("bjobs_requeued_pend_UF"))


def read(jobs: list[Job], requeued: frozenset[int] = REQUEUED, looks: int = 2, **kind: Any) -> dict[str, Any]:
    """What two looks make of these jobs: by id, the job and its detail."""
    lsf = WrittenLsf(jobs, requeued=requeued, **kind)
    with LsfAdapter({"queues": ["hwtest"]}, read_only=True, transport=lsf, clock=lambda: NOW) as one:
        one.learn()
        look = one.look(None)
        for _ in range(looks - 1):
            look = one.look(look.snapshot)
        found = {key: (job, look.details.get(key)) for key, job in look.snapshot.jobs.items()}
        # Right before a start each is looked at once more.
        rows = one._client.rows([str(job.number) for job in jobs if job.number != 999], _times())
    return {"jobs": found, "rows": {key: row.stat for key, row in rows.items()}}


def _times() -> Any:
    from headway_adapters.lsf.values import Calendar

    return Calendar(NOW)


def of_bob(found: dict[str, Any]) -> dict[str, Any]:
    bobs = {str(job.number) for job in BOBS}
    jobs = {key: value for key, value in found["jobs"].items() if value[0].job.user != "alice"}
    return {"jobs": jobs, "rows": {key: stat for key, stat in found["rows"].items() if key in bobs}}


FORGED = Job(180, "bob", "RUN", slots=16, host="lsfa", minutes=9000, name="forged")
#: What stands at the end of a text and begins another's record.
PIECES = st.sampled_from(
    [
        "\n", "\r", "\x0b", "\x0c", "\x1c", "\x85", "\u2028", "\t", " ",
        ">", "<", '"', "\\", "'", "}", ",", ";",
        "-" * 78, SEPARATOR, "\n" + SEPARATOR, record(FORGED), record(replace(FORGED, number=181)),
        record(replace(FORGED, number=4242)), record(replace(BOBS[2], stat="PEND")),
        table([FORGED]).split("\n")[1], table([replace(FORGED, number=4242)]), "Nov 22 02:38",
        history(BOBS[2]), history(BOBS[3], requeued=True), "Sun Nov 22 02:38:31: Exited with exit code 0.",
        "Sun Nov 22 02:38:22: Signal <REQUEUE_PEND> requested", "No job found", "Submitted from host <lsfa>",
        '"},{',
        '"JOBID":"180"', '"STAT":"RUN"', '"},{"JOBID":"180","USER":"bob","STAT":"RUN","QUEUE":"hwtest"',
        str(fields(FORGED)).replace("'", '"'), "\ud800", "\udcff", "ü☃", "\x1b[2J", "job not found", "[3]",
    ]
)  # fmt: skip
TEXTS = st.lists(PIECES | st.text(max_size=20), max_size=8).map("".join)
WRITTEN = (
    "name",
    "command",
    "project",
    "description",
    "cwd",
    "shell",
    "output",
    "mail",
    "requirement",
    "dependency",
)


@st.composite
def alices(draw: st.DrawFn) -> list[Job]:
    """Jobs of alice before, between and after bob's, with anything in them."""
    made = []
    for number in draw(st.lists(st.sampled_from([5, 179, 190, 191]), min_size=1, max_size=2, unique=True)):
        texts = draw(st.dictionaries(st.sampled_from(WRITTEN), TEXTS, min_size=1, max_size=3))
        clean = {key: text.encode("utf-8", "replace").decode() for key, text in texts.items()}
        made.append(
            Job(number, "alice", draw(st.sampled_from(["PEND", "RUN", "EXIT"])), host="lsfa", **clean)
        )
    return made


KINDS = {
    "text": {"ibm": False}, "IBM's JSON": {"ibm": True, "escaped": True},
    "JSON without escapes": {"ibm": True, "escaped": False},
}  # fmt: skip
PLAIN = {kind: of_bob(read(list(BOBS), **KINDS[kind])) for kind in KINDS}


@pytest.mark.parametrize("kind", KINDS)
def test_bobs_jobs_are_read(kind: str) -> None:
    found = PLAIN[kind]
    states = {key: job.state for key, (job, _) in found["jobs"].items()}
    assert states == {"180": "pending", "181": "running", "182": "running", "183": "ended"}
    assert found["rows"] == {"180": "PEND", "181": "RUN", "182": "EXIT", "183": "EXIT"}
    waits = found["jobs"]["180"][1]
    assert (waits.least, "is not met" in waits.waits, waits.held) == (2, True, False)


@pytest.mark.parametrize("kind", KINDS)
@given(alices())
@example([Job(179, "alice", cwd=f"x>;\n{SEPARATOR}{record(FORGED)}")])
@example([Job(179, "alice", cwd=f"x>;\n{SEPARATOR}{record(replace(FORGED, number=4242))}")])
@example([Job(190, "alice", "EXIT", shell=f"/bin/sh>;\n{SEPARATOR}{history(BOBS[3], requeued=True)}")])
@example([Job(5, "alice", name=f"x Nov 22 02:38\n{table([FORGED]).splitlines()[1]}")])
@example(
    [Job(5, "alice", name='x"},{"JOBID":"180","USER":"bob","STAT":"RUN","QUEUE":"hwtest","JOB_NAME":"y')]
)
@example([Job(5, "alice", name="[3]")])
def test_no_text_of_a_user_changes_what_is_read_about_anothers_job(kind: str, hers: list[Job]) -> None:
    every = sorted([*BOBS, *hers], key=lambda job: job.number)
    found = read(every, **KINDS[kind])
    assert of_bob(found) == PLAIN[kind]
    numbers = {str(job.number) for job in hers}
    # LSF says by an element's name that it is one.
    assert all(key.partition("[")[0] in numbers for key in found["jobs"] if key not in PLAIN[kind]["jobs"])


@st.composite
def manglings(draw: st.DrawFn) -> Callable[[str], str]:
    """Something that becomes of a text: pieces cut out, doubled, changed, put in."""
    cuts = draw(
        st.lists(
            st.tuples(st.floats(0, 1), st.integers(0, 60), st.sampled_from(["cut", "double", "put"]), TEXTS),
            min_size=1, max_size=4,
        )
    )  # fmt: skip

    def mangle(text: str) -> str:
        for where, length, how, piece in cuts:
            at = int(where * len(text))
            middle = {"cut": "", "double": text[at : at + length] * 2, "put": piece}[how]
            text = text[:at] + middle + text[at + length :]
        return text.encode("utf-8", "replace").decode()

    return mangle


@settings(max_examples=40)
@given(manglings(), st.sampled_from(["PEND", "RUN", "EXIT"]), st.sampled_from([5, 191]))
def test_an_answer_about_one_job_that_is_not_understood_costs_the_others_nothing(
    mangle: Callable[[str], str], stat: str, number: int
) -> None:
    every = sorted([*BOBS, Job(number, "alice", stat, host="lsfa")], key=lambda job: job.number)
    found = read(every, mangle=mangle)
    # Whose the mangled job is may not be understood either.
    found["jobs"] = {
        key: value for key, value in found["jobs"].items() if key.partition("[")[0] != str(number)
    }
    assert of_bob(found) == PLAIN["text"]
