"""Limits as the daemon tells them: to each user those of the own jobs, and without an effect."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from building import described, plugged

from headway.errors import UserError
from headway.events import JobStarted, JobSubmitted
from headway.model import ClusterDescription
from headway.model.questions import Question
from headway.scheduler import Scheduler
from headway_plugins.limits.plugin import Limits, LimitsOptions
from headway_plugins.limits.reports import LimitList, LimitReport
from headway_plugins.policies.easy import Easy

OF = {
    "user": {"*": {"jobs": 2, "processor_minutes": 100}, "eve": {"jobs": 1, "largest": {"processors": 4}}},
    "account": {"physics": {"processors": 6}},
    "qos": {"long": {"budget": 1000}},
}
ACCOUNTS = {"physics": {"users": {"ann": 1, "bob": 1}}, "chemistry": {"users": {"eve": 2}}}


def running() -> Scheduler:
    """At 60 s: ann's job of 4 processors has 60 s to go, and a job of eve waits, which is too large."""
    plugins = [Limits(LimitsOptions(of=OF, accounts=ACCOUNTS)), Easy()]
    scheduler = Scheduler(ClusterDescription.flat(8), plugged(*plugins))
    first = described("1", 4, 120.0, user="ann", account="physics")
    second = described("2", 8, 120.0, user="eve", account="chemistry", qos="long")
    scheduler.step(0.0, [JobSubmitted(0.0, first), JobSubmitted(0.0, second)])
    scheduler.step(0.0, [JobStarted(0.0, "1")])
    scheduler.step(60.0, [])
    return scheduler


def asked(scheduler: Scheduler, user: str = "", text: str = "") -> LimitList:
    """The answer as a client reads it; ``user``: all may be seen without one."""
    found = scheduler.inform.first(Question("limits", text, user, not user), scheduler.state)
    return msgspec.json.decode(msgspec.json.encode(found), type=LimitList)


def test_what_is_in_use_of_each_limit_is_told() -> None:
    rows = {(row.of, row.measure, row.used is None): row for row in asked(running()).rows}
    ann = "user 'ann'"
    assert rows[ann, "jobs", False] == LimitReport(ann, "jobs", "running jobs", 2.0, 1.0)
    # A minute of two is left, on 4 processors.
    assert rows[ann, "processor_minutes", False].used == 4.0
    assert rows["account 'physics'", "processors", False].used == 4.0
    assert rows["user 'eve'", "jobs", False].used == 0.0
    assert rows["user 'eve'", "processors", True].limit == 4.0
    assert rows["qos 'long'", "budget", False] == LimitReport(
        "qos 'long'", "budget", "processor-minutes, used and still to run,", 1000.0, 0.0
    )


def test_a_user_is_told_of_the_limits_of_the_own_jobs() -> None:
    scheduler = running()
    assert {row.of for row in asked(scheduler, "ann").rows} == {"user 'ann'", "account 'physics'"}
    assert {row.of for row in asked(scheduler, "eve").rows} == {"user 'eve'", "qos 'long'"}
    assert asked(scheduler, "nobody").rows == ()


def test_the_answer_comes_in_pages() -> None:
    scheduler = running()
    whole = asked(scheduler).rows
    found: list[Any] = []
    place: int | None = 0
    while place is not None:
        one = asked(scheduler, text=f'{{"first": {place}, "count": 2}}')
        assert len(one.rows) <= 2
        found += one.rows
        place = one.next
    assert tuple(found) == whole


@pytest.mark.parametrize("text", ["[]", '{"first": -1}', '{"users": "ann"}', "{"])
def test_a_question_that_says_nothing_is_the_users_error(text: str) -> None:
    with pytest.raises(UserError, match="the question 'limits'"):
        running().inform.first(Question("limits", text, "ann"), running().state)


def test_asking_changes_nothing() -> None:
    asked_often, other = running(), running()
    for now in (70.0, 130.0):
        for user in ("", "ann", "zoe"):
            asked(asked_often, user)
        more = described(f"more{now}", 2, 50.0, user="ann", account="physics", submit=now)
        made = asked_often.step(now, [JobSubmitted(now, more)])
        assert made == other.step(now, [JobSubmitted(now, more)])
