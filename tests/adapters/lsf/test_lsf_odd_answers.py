"""What is odd in an answer concerns what it is about, and nothing else; nothing but a Failure comes of it."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from recorded_lsf import LATER, output

from headway.errors import Failure
from headway_adapters.lsf import cluster_listing, hosts, listing
from headway_adapters.lsf.values import Calendar

GROUPS = "GROUP_NAME    HOSTS\nbig h1 h2\nsmall h3\n"
RESERVATIONS = (
    "RSVID       TYPE      USER      NCPUS    RSV_HOSTS      TIME_WINDOW\n"
    "headway_r1  user      root      0/4      h1:0/2         11/21/10/0-11/21/12/0\n"
    "                                         h2:0/2\n"
    "boss#1      sys       -         0/2      h3:0/2         11/22/8/0-11/22/9/30\n"
)


def calendar() -> Calendar:
    return Calendar(LATER)


READERS: dict[str, tuple[str, Callable[[str], Any]]] = {
    "bjobs -w": (output("bjobs_all_wide"), lambda t: listing.read_wide_rows(t, calendar(), set())),
    "bjobs -UF": (output("bjobs_UF"), lambda t: listing.read_long(t, calendar(), set())),
    "bjobs -l": (output("bjobs_long"), lambda t: listing.read_long(listing.unwrapped(t), calendar(), set())),
    "bjobs -json": (
        output("bjobs_o_json"), lambda t: listing.read_json_rows(t.encode(), calendar(), set())
    ),
    "bjobs -o jobid": (output("bjobs_o_json"), lambda t: listing.read_owners(t.encode())),
    "bhist -l": (output("bhist"), lambda t: (listing.read_history(t, calendar()), listing.told_of(t))),
    "bhist -l of a requeue": (output("bhist_requeue_exit"), lambda t: listing.read_history(t, calendar())),
    "bhosts -w": (output("bhosts_wide"), cluster_listing.read_hosts),
    "bhosts -l": (output("bhosts_long"), cluster_listing.read_hosts),
    "bqueues -l": (output("bqueues_long"), cluster_listing.read_queues),
    "lshosts -w": (output("lshosts"), hosts.static_hosts),
    "lsid": (output("lsid"), cluster_listing.read_system),
    "bmgroup -r -w": (GROUPS, cluster_listing.read_groups),
    "brsvs -w": (RESERVATIONS, lambda t: cluster_listing.read_reservations(t, calendar(), set())),
}  # fmt: skip


def mutated(text: str, seed: int) -> str:
    """Pieces cut out, doubled, moved, replaced, numbers made large."""
    draw = random.Random(seed)
    for _ in range(draw.randint(1, 6)):
        at, length = draw.randrange(len(text) + 1), draw.choice((1, 1, 3, 10, 80))
        piece, rest = text[at : at + length], text[at + length :]
        other = draw.randrange(len(text) + 1)
        put = draw.choice(
            ("", piece * 2, piece[::-1],
             "\n", "\0", "9" * 400, "-", "<", ">", ":", "\u2028", "\udcff", "[", "1e999",
             text[other : other + 80])
        )  # fmt: skip
        text = text[:at] + put + rest
    return text.encode("utf-8", "replace").decode()


@pytest.mark.parametrize("command", READERS)
@given(seed=st.integers(0, 1 << 32))
def test_a_damaged_answer_is_read_or_a_failure(command: str, seed: int) -> None:
    text, read = READERS[command]
    try:
        read(mutated(text, seed))
    except Failure:
        return


def test_a_date_with_a_day_that_no_calendar_has_is_none() -> None:
    assert calendar().date(None, 11, 10**40, 10, 0) is None
    assert calendar().date(None, 11, 31, 10, 0) is None


HOSTS = "HOST_NAME STATUS JL/U MAX NJOBS RUN SSUSP USUSP RSV\n"


@given(st.text(st.characters(exclude_characters="\n\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"), max_size=60))
def test_one_hosts_odd_line_costs_that_host(line: str) -> None:
    others = "h1 ok - 4 1 1 0 0 0\nh2 closed_Adm - 4 0 0 0 0 0\n"
    found = cluster_listing.read_hosts(f"{HOSTS}{line}\n{others}")
    assert found["h1"].slots == 4 or line.split()[:1] == ["h1"]
    assert found["h2"].status == "closed_Adm"
