"""Subjobs in the state and in the guard: whose they are."""

from __future__ import annotations

import pytest
from building import described

from headway import events as ev
from headway.decisions import Migrate, SubmitSubjob
from headway.errors import StateError
from headway.model import ClusterDescription
from headway.model.bundles import BUNDLE
from headway.state import State


def arrived(*jobs):
    """A state in which these jobs wait."""
    made = State(ClusterDescription.flat(16))
    made.now = 0.0
    made.apply([ev.JobSubmitted(0, job) for job in jobs])
    return made


def test_a_subjob_is_one_of_its_own_users_job_only():
    mine = described("a.1", 2, user="alice", attributes={BUNDLE: "a"})
    other = described("x", 2, user="bob", attributes={BUNDLE: "b"})
    lost = described("y", 2, user="bob", attributes={BUNDLE: "nobody"})
    made = arrived(described("a", 8, user="alice"), described("b", 8, user="alice"), mine, other, lost)
    assert made.bundles == {"a"} and not made.anomalies
    for job in (mine, other):
        made.begin(made.jobs[job.id], (), "foreground", None)
        made.apply([ev.JobStarted(0, job.id)])
    made.carry(Migrate("a", (("a.1", 2),)))
    with pytest.raises(StateError, match="job x is not in the bundle of job a"):
        made.carry(Migrate("a", (("x", 2),)))


@pytest.mark.parametrize(
    ("parent", "job", "message"),
    [
        ("z", described("z.1", 2, attributes={BUNDLE: "z"}), "job z is not known"),
        ("a", described("a.1", 2), "does not say that it is a subjob of job a"),
        ("a", described("b", 2, attributes={BUNDLE: "a"}), "job b exists"),
        ("a", described("a.1", 8, attributes={BUNDLE: "a"}), "expected 1 to 7"),
    ],
)
def test_a_subjob_that_is_none_is_not_submitted(parent, job, message):
    made = arrived(described("a", 8), described("b", 1))
    with pytest.raises(StateError, match=message):
        made.guard_subjob(SubmitSubjob(parent, job))
