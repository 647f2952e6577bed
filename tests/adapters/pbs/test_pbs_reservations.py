"""PBS's reservations, also those of which somebody else's text tells."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from pbs_recorded import recorded

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
