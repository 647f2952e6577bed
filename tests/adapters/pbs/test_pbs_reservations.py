"""PBS's reservations, also those of which somebody else's text tells."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pbs_recorded import recorded
from pretended import events, result
from pretended_pbs import PretendedPbs, adapter

from headway import decisions as d
from headway.model import Reservation
from headway_adapters.pbs import reservations


def read(text: str, notes: set[str], owner: str = "alice") -> dict[str, tuple[str, Reservation]]:
    found, _ = reservations.records(text)
    reserved = {"R5.pbshost": {"pbshost[0]", "pbshost[1]"}, "R6.pbshost": {"pbshost[2]"}}
    return reservations.read(found, 0.0, reserved, notes, owners={owner})


def test_a_reservation_without_vnodes_is_no_reservation_yet() -> None:
    notes: set[str] = set()
    assert read(recorded("pbs_rstat_full")["stdout"], notes) == {}


RESERVED = """Resv ID: R5.pbshost
Reserve_Name = headway_r1
Reserve_Owner = alice@pbshost
reserve_state = RESV_CONFIRMED
reserve_start = Sat Nov 21 07:33:00 2026
reserve_end = Sat Nov 21 08:03:00 2026
queue = R5
Authorized_Users = alice@pbshost,bob@pbshost
resv_nodes = (pbshost[0]:ncpus=8)+(pbshost[1]:
\tncpus=8)

Resv ID: R6.pbshost
Reserve_Name = class
reserve_state = RESV_BEING_DELETED
reserve_start = Sat Nov 21 07:33:00 2026
reserve_end = Sat Nov 21 08:03:00 2026
resv_nodes = (pbshost[2]:ncpus=8)

"""


def test_a_confirmed_reservation() -> None:
    notes: set[str] = set()
    assert read(RESERVED, notes) == {
        "r1": (
            "R5.pbshost",
            Reservation(
                "r1", 1795246380.0, 1795248180.0, nodes=("pbshost[0]", "pbshost[1]"),
                users=("alice", "bob"), ours=True,
            ),
        )
    }  # fmt: skip
    assert notes == {"reservation R6.pbshost is RESV_BEING_DELETED and is ignored"}


@pytest.mark.parametrize("state", ["DEGRADED", "BEING_ALTERED", "TIME_TO_RUN", "RUNNING", "IN_CONFLICT"])
def test_a_reservation_that_has_its_vnodes_is_one(state: str) -> None:
    text = RESERVED.replace("RESV_CONFIRMED", f"RESV_{state}")
    assert set(read(text, set())) == {"r1"}


@pytest.mark.parametrize("state", ["UNCONFIRMED", "WAIT", "FINISHED", "BEING_DELETED", "DELETING_JOBS"])
def test_another_is_none_and_is_noted(state: str) -> None:
    notes: set[str] = set()
    assert read(RESERVED.replace("RESV_CONFIRMED", f"RESV_{state}"), notes) == {}
    assert f"reservation R5.pbshost is RESV_{state} and is ignored" in notes


def test_a_reservation_is_ours_only_if_we_made_it() -> None:
    ((name, found),) = read(RESERVED, set(), owner="headway").values()
    assert (name, found.id, found.ours) == ("R5.pbshost", "R5.pbshost", False)


def test_a_record_within_another_reservations_text_is_seen() -> None:
    """As recorded: an account of R54 holds "Resv ID: R52.pbsa" and a state."""
    text = recorded("pbs_rstat_forged_record")["stdout"]
    found, twice = reservations.records(text)
    assert twice == {"R52.pbsa"}
    assert found["R52.pbsa"]["Reserve_Name"] == "good"
    # Nothing that stands behind the forged record counts for the one that holds it or for the other.
    assert set(found) == {"R52.pbsa", "R53.pbsa", "R54.pbsa", "R55.pbsa"}
    assert reservations.read(found, 0.0, {}, set(), owners=()) == {}


PIECES = ["\n", "\n\n", "\t", "Resv ID: R5.pbshost", "Resv ID: R9.x", "reserve_state = RESV_CONFIRMED",
          "resv_nodes = (pbshost[2]:ncpus=8)", "reserve_start = 1", " = ", "x"]  # fmt: skip
TEXT = st.lists(st.sampled_from(PIECES), max_size=8).map("".join)


@given(TEXT)
def test_no_text_gives_a_vnode_to_a_reservation_that_it_does_not_name(text: str) -> None:
    lines = RESERVED.replace("Authorized_Users", f"Account_Name = {text}\nAuthorized_Users")
    reserved = {"R5.pbshost": {"pbshost[0]"}}
    found, _ = reservations.records(lines)
    for _, reservation in reservations.read(found, 0.0, reserved, set(), owners=()).values():
        assert set(reservation.nodes) <= {"pbshost[0]"}


def wanted() -> Reservation:
    start = time.time() + 3600
    return Reservation("m1-0-west", start, start + 600, pool="workq", nodes=("pbshost[3]",), users=("ann",))


@pytest.mark.parametrize(
    ("said", "accepted"),
    [
        ("R3.pbshost CONFIRMED\n", True),
        ("R3.pbshost DENIED\n", False),
        ("R3.pbshost delete, wait period expired\n", False),
    ],
)
def test_a_refusal_of_pbs_scheduler_is_one_although_its_exit_code_is_0(said: str, accepted: bool) -> None:
    pbs = PretendedPbs()
    pbs.answer = lambda argv: result(argv, said) if argv[0] == "pbs_rsub" else None
    with adapter(pbs, reservations=True) as one:
        one.describe()
        events(one, 0.1)
        (outcome,) = one.apply(time.time(), [d.Reserve(wanted())])
    assert outcome.accepted is accepted
    assert accepted or outcome.message == said.strip()


def test_a_scheduler_that_confirms_nothing_is_not_asked_at_once_again() -> None:
    pbs, ahead = PretendedPbs(), [0.0]
    said = ["R3.pbshost delete, wait period expired\n"]
    pbs.answer = lambda argv: result(argv, said[0]) if argv[0] == "pbs_rsub" else None

    def asked() -> int:
        return sum(argv[0] == "pbs_rsub" for argv in pbs.said)

    with adapter(pbs, reservations=True, clock=lambda: time.time() + ahead[0]) as one:
        one.describe()
        events(one, 0.1)
        outcomes = one.apply(one.now(), [d.Reserve(wanted())] * 3)
        assert asked() == 1 and not any(outcome.accepted for outcome in outcomes)
        assert "it is asked again in 30 s (is pbs_sched running?)" in outcomes[2].message
        ahead[0] += 31.0
        said[0] = "R4.pbshost DENIED\n"
        outcomes = one.apply(one.now(), [d.Reserve(wanted())] * 2)
        assert asked() == 3 and [outcome.message for outcome in outcomes] == ["R4.pbshost DENIED"] * 2


@pytest.mark.parametrize(
    ("told", "ok", "known", "detail"),
    [
        ("Sched default\n    sched_host = a\n    state = idle\n\n", True, True, "default is idle"),
        (
            "Sched default\n    state = scheduling\n\nSched night\n    log = 1\n    state = down\n",
            False, True,
            "default is scheduling, night is down: reservations stay unconfirmed",
        ),
        ("", True, False, "its state is not told"),
    ],
)  # fmt: skip
def test_whether_pbs_scheduler_runs_is_checked_where_it_is_needed(
    told: str, ok: bool, known: bool, detail: str
) -> None:
    pbs = PretendedPbs()
    pbs.answer = lambda argv: result(argv, told) if argv[0] == "qmgr" else None
    with adapter(pbs, read_only=True, reservations=True) as one:
        checks = {check.subject: check for check in one.check()}
    found = checks["pbs's scheduler"]
    assert (found.ok, found.known, found.detail) == (ok, known, detail)
    with adapter(pbs, read_only=True) as one:
        assert not {"pbs's scheduler", "reservations"} & {check.subject for check in one.check()}


@pytest.mark.parametrize("user", ["root", "headway"])
def test_that_root_makes_no_reservation_is_told(user: str) -> None:
    pbs = PretendedPbs()
    pbs.user = user
    with adapter(pbs, read_only=True, reservations=True) as one:
        told = [check for check in one.check() if check.subject == "reservations"]
    assert [(check.ok, check.known) for check in told] == ([(True, False)] if user == "root" else [])
    assert not told or "PBS refuses root's" in told[0].detail
