"""Who leads, by a clock that the test sets."""

from __future__ import annotations

import pytest

from headway.standby.leadership import PART, Deposed, Role, Tenure, Watch, Word

ONE, TWO = Word(7, "process 1 on host a"), Word(8, "process 2 on host b")


def beat(word: Word, beats: int) -> Word:
    return Word(word.epoch, word.holder, beats)


# -- the stand-by


def test_a_leader_that_renews_is_never_over() -> None:
    watch = Watch(5.0, 0.0)
    for second in range(100):
        watch.hear(beat(ONE, second), float(second))
        assert not watch.is_over(second + 4.9)


def test_a_leader_is_over_when_it_renewed_nothing_for_the_patience() -> None:
    watch = Watch(5.0, 0.0)
    watch.hear(ONE, 3.0)
    for now, over in ((7.9, False), (8.0, True)):
        # The same word again is no sign of life.
        watch.hear(ONE, now)
        assert watch.is_over(now) is over
    assert watch.silent(8.0) == 5.0


def test_a_leader_that_gave_up_its_lease_is_over_at_once() -> None:
    watch = Watch(5.0, 0.0)
    watch.hear(Word(7, "process 1 on host a", 3, released=True), 1.0)
    assert watch.is_over(1.0)


def test_a_new_leader_gives_a_new_patience() -> None:
    watch = Watch(5.0, 0.0)
    watch.hear(ONE, 0.0)
    watch.hear(TWO, 4.9)
    assert not watch.is_over(9.8) and watch.word == TWO


def test_while_the_database_is_away_the_leader_could_not_renew_either() -> None:
    watch = Watch(5.0, 0.0)
    watch.hear(ONE, 0.0)
    for now in (2.0, 4.0, 6.0, 60.0):
        watch.blind(now)
    watch.hear(ONE, 60.1)
    assert not watch.is_over(64.9) and watch.is_over(65.0)


def test_a_sign_of_life_from_before_a_stop_does_not_count_the_stop_as_silence() -> None:
    watch = Watch(5.0, 0.0)
    watch.hear(ONE, 0.0)
    # The stand-by was stopped after the word came, and before it was looked at.
    watch.blind(60.0)
    watch.hear(beat(ONE, 1), 0.5)
    assert watch.word == beat(ONE, 1) and watch.silent(60.0) == 0.0 and not watch.is_over(64.9)


def test_what_was_read_before_stays_known_when_nothing_is_read() -> None:
    watch = Watch(5.0, 0.0)
    watch.hear(ONE, 1.0)
    watch.hear(None, 2.0)
    assert watch.word == ONE and watch.silent(2.0) == 1.0


# -- the leader


def test_a_leader_may_act_for_a_part_of_the_patience_after_each_renewal() -> None:
    tenure = Tenure(ONE, 10.0, 0.0)
    assert not tenure.is_overdue(10.0 * PART) and tenure.is_overdue(10.0 * PART + 0.1)
    tenure.renewed(beat(ONE, 1), 5.0)
    assert not tenure.is_overdue(5.0 + 10.0 * PART)
    assert tenure.since_renewal(9.0) == 4.0


def test_it_stops_before_a_stand_by_can_think_it_silent() -> None:
    """Whenever the renewal came into force after it was begun."""
    for came in (0.0, 0.5, 3.0):
        tenure, watch = Tenure(ONE, 5.0, 0.0), Watch(5.0, 0.0)
        watch.hear(ONE, came)
        now = came
        while not watch.is_over(now):
            now += 0.1
        assert tenure.is_overdue(now)


def test_a_renewal_that_was_slow_counts_from_its_beginning_and_never_back() -> None:
    tenure = Tenure(ONE, 10.0, 5.0)
    tenure.renewed(beat(ONE, 1), 4.0)
    assert tenure.since_renewal(5.0) == 0.0 and tenure.word.beats == 1


def test_whoever_gave_up_leads_never_again_and_says_why() -> None:
    tenure = Tenure(ONE, 5.0, 0.0)
    tenure.check()
    tenure.give_up("process 2 on host b leads with epoch 8")
    tenure.give_up("another reason")
    tenure.renewed(beat(ONE, 1), 1.0)
    assert tenure.role is Role.GAVE_UP and tenure.word == ONE
    with pytest.raises(Deposed, match="process 2 on host b leads with epoch 8"):
        tenure.check()
