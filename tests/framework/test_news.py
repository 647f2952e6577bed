"""What a domain has heard since its policies were asked, operation by operation."""

from __future__ import annotations

import pytest

from headway.state.news import ENDS_MOVED, News, Unnoticed

OPERATIONS = {
    "everything": lambda news: news.everything(),
    "nothing stands": lambda news: news.nothing_stands(),
    "ends moved": lambda news: news.ends_moved(),
    "last": lambda news: news.came("a", last=True),
    "among": lambda news: news.came("b", last=False),
    "several among": lambda news: news.came_among(["c", "d"]),
    "told": lambda news: news.tell(),
}


@pytest.mark.parametrize(
    ("happened", "due", "fresh", "arrivals"),
    [
        (["told"], False, 0, []),
        (["told", "last", "last"], False, 2, ["a", "a"]),
        (["told", "among"], True, -1, ["b"]),
        (["told", "among", "last"], True, -1, ["b", "a"]),
        (["told", "several among"], True, -1, ["c", "d"]),
        (["told", "ends moved"], True, ENDS_MOVED, None),
        (["told", "ends moved", "ends moved"], True, ENDS_MOVED, None),
        (["told", "last", "ends moved"], True, -1, None),
        (["told", "ends moved", "last"], True, -1, None),
        (["told", "everything"], True, -1, None),
        (["told", "everything", "ends moved"], True, -1, None),
        (["told", "nothing stands"], False, -1, None),
        (["told", "last", "nothing stands", "last"], True, -1, None),
        (["told", "everything", "told"], True, 0, []),
        (["last"], True, -1, None),
    ],
)
def test_what_a_policy_may_conclude(happened, due, fresh, arrivals):
    news = News()
    for each in happened:
        OPERATIONS[each](news)
    assert (news.due, news.fresh, news.arrivals) == (due, fresh, arrivals)


# No job comes while a job takes processors.
@pytest.mark.parametrize("happened", ["everything", "nothing stands", "ends moved", "told"])
def test_what_happens_unnoticed_is_no_news(happened):
    class Domain:
        news = News(fresh=1, arrivals=["x"])

    domain = Domain()
    with Unnoticed([domain]):
        OPERATIONS[happened](domain.news)
    assert (domain.news.due, domain.news.fresh, domain.news.arrivals) == (False, 1, ["x"])


def test_what_happened_stays_unnoticed_if_it_fails():
    class Domain:
        news = News(fresh=0, arrivals=[])

    domain = Domain()
    with pytest.raises(ValueError), Unnoticed([domain]):
        domain.news.everything()
        raise ValueError
    assert (domain.news.due, domain.news.fresh, domain.news.arrivals) == (False, 0, [])
