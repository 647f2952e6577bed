"""What `headway top` shows at 80 x 24, as text: each view, and that nothing in it commands a terminal."""

from __future__ import annotations

import msgspec
import pytest
from rich.cells import cell_len
from top_daemons import NOW, ROOM, Said, Scheduled, board_of, job, running, screen, waiting

from headway.cli.top.asking import Pace
from headway.cli.top.board import driven, names
from headway.cli.top.view import Room
from headway.errors import Failure
from headway.inquiry.reports import (
    BookingPage,
    BookingReport,
    CycleReport,
    DecisionReport,
    NodePage,
    NodeReport,
)
from headway.service import protocol as p
from headway.service.limits import Allowance, Limits

HOSTILE = "\x1b[2J\x1b]0;owned\x07[red]x[/red][@click=app.quit]\u202e\n\tend\u0301\uff37"


@pytest.fixture(autouse=True)
def in_utc(monkeypatch: pytest.MonkeyPatch) -> None:
    import time

    monkeypatch.setenv("TZ", "UTC")
    time.tzset()


def full() -> Scheduled:
    """Two jobs run on four nodes, and three wait."""
    jobs = [job("1", 8), job("2", 4, 7200.0, user="ben"), job("3", 16, name="wide"), job("4", 8), job("5", 8)]
    return Scheduled(*jobs)


def test_the_queue_tells_places_planned_starts_and_reasons() -> None:
    assert [line.rstrip() for line in screen(board_of(full()))[:9]] == [
        " headway top  tc, drive  5 jobs, 2 run                           as of 22:13:20",
        "[1 queue] 2 running  3 pools  4 nodes  5 plan  6 cycles  7 shares  ? help",
        "",
        " job user pool status  cpus waited place start       reason",
        ">3   ann  pool pending   16     0s     1 11-15 00:13 booking (1 +1)",
        " 4   ann  pool pending    8     0s     2 23:13       booking (1)",
        " 5   ann  pool pending    8     0s     3 11-15 01:13 booking (1 +1)",
        " 1   ann  pool running    8     0s       22:13",
        " 2   ben  pool running    4     0s       22:13",
    ]


def test_the_job_that_is_pointed_at_says_why_it_waits() -> None:
    board = board_of(full())
    board.key("down", ROOM)
    lines = screen(board)
    assert lines[5].startswith(">4")
    assert "4: Processors are kept for it from" in lines[-3]


def test_running_jobs_have_their_ends() -> None:
    lines = screen(board_of(full(), "running"))
    assert [line.split()[:8] for line in lines[4:6]] == [
        [">1", "ann", "pool", "8", "22:13", "23:13", "1h", "1h"],
        ["2", "ben", "pool", "4", "22:13", "11-15", "00:13", "2h"],
    ]


def test_a_job_has_a_page_with_what_explain_tells() -> None:
    ask = full()
    board = board_of(ask)
    board.key("enter", ROOM)
    driven(board.look(ROOM), ask)
    text = "\n".join(screen(board))
    assert "Job 3 is pending in pool; user ann, name wide" in text
    assert "Processors are kept for it from" in text
    assert "place 1 of 3" in text
    board.key("escape", ROOM)
    assert screen(board)[1].startswith("[1 queue]")


def test_pools_have_their_use_and_their_largest_hole() -> None:
    assert screen(board_of(full(), "pools"))[4].split() == [
        ">pool", "open", "16", "4", "########..", "75%", "3", "2", "4", "for", "2h",
    ]  # fmt: skip


def test_the_map_has_a_character_a_node() -> None:
    lines = screen(board_of(full(), "nodes"))
    assert lines[4].split() == ["n0", "###."]
    assert "Node 1 of 4: " in lines[-4]


MARKS = [
    (NodeReport("n", 10, 10), "."),
    (NodeReport("n", 10, 0), "#"),
    (NodeReport("n", 10, 5), "5"),
    (NodeReport("n", 100, 99), "1"),
    (NodeReport("n", 100, 1), "9"),
    (NodeReport("n", 10, 10, reservations=("r",)), "R"),
    (NodeReport("n", 10, 10, available=False, reason="disk"), "x"),
    (NodeReport("n", 10, 10, power="asleep"), "z"),
    (NodeReport("n", 10, 10, power="waking"), "w"),
]


@pytest.mark.parametrize(("node", "mark"), MARKS, ids=[mark for _, mark in MARKS])
def test_each_state_of_a_node_has_a_character(node: NodeReport, mark: str) -> None:
    board = board_of(Said(nodes=NodePage((node,))), "nodes")
    assert screen(board)[4].split() == ["n", mark]
    assert f" {mark} " in screen(board)[3] or mark.isdigit()
    if not node.available:
        assert "not usable: disk" in "\n".join(screen(board))


def test_the_plan_draws_what_runs_and_what_is_booked_by_node() -> None:
    nodes = NodePage((NodeReport("n1", 4, 0, jobs=("11",)), NodeReport("n2", 4, 4), NodeReport("n3", 4, 0)))
    bookings = BookingPage(
        (BookingReport("12", "batch", 4, NOW + 3600.0, NOW + 7200.0, "ann", (("n1", 4), ("n2", 4))),)
    )
    board = board_of(Said([running(11, "n1")], nodes=nodes, bookings=bookings), "plan")
    lines = [line.rstrip() for line in screen(board)]
    assert lines[3].startswith("             |22:13")
    half = 33
    assert lines[4] == ">n1          " + "|11".ljust(half, "#") + "|12".ljust(half, "=")
    assert lines[5] == " n2          " + "." * half + "|12".ljust(half, "=")
    # In use, and the daemon does not tell by which job.
    assert lines[6] == " n3          ?" + "." * (2 * half - 1)
    assert lines[-3].strip() == "11 ben runs-23:13, 12 ann 23:13-11-15 00:13."


def test_jobs_that_share_a_node_are_marked() -> None:
    nodes = NodePage((NodeReport("n1", 4, 0, jobs=("1", "2")),))
    said = Said([running(1, "n1"), running(2, "n1", 1800.0)], nodes=nodes, bookings=BookingPage(()))
    row = screen(board_of(said, "plan"))[4]
    assert row.startswith(">n1          %%%%") and "##" in row


def test_a_cluster_without_nodes_has_a_line_a_job() -> None:
    said = Said(
        [running(11, "", placement=())], nodes=NodePage(()),
        bookings=BookingPage((BookingReport("12", "batch", 4, NOW + 1800.0, NOW + 3600.0),)),
    )  # fmt: skip
    lines = screen(board_of(said, "plan"))
    assert lines[4].startswith(">11          |11###")
    assert lines[5].startswith(" 12          ...") and "|12==" in lines[5]


def test_cycles_come_with_their_decisions_and_missed_cycles_are_counted() -> None:
    said = Said(cycle=CycleReport(7, NOW, 0.25, 0.1, {"JobSubmitted": 2}, {}))
    board = board_of(said, "cycles")
    decided = (
        DecisionReport("Start", "12", "it fits"),
        DecisionReport("Start", "13", "", False, "node is down"),
    )
    said.found["cycle"] = CycleReport(10, NOW + 5, 0.01, 0.01, {}, {"Start": 9}, decided)
    driven(board.look(ROOM), said)
    driven(board.look(ROOM), said)
    assert [line.strip() for line in screen(board)[3:10]] == [
        "22:13:20 cycle 7 (250 ms): 2 JobSubmitted",
        "nothing was decided",
        "... 2 cycles between were not asked for",
        "22:13:25 cycle 10 (10 ms): nothing happened",
        "Start 12: it fits",
        "Start 13 REFUSED by the cluster: node is down",
        "... of 9 Start",
    ]


def test_shares_are_a_tree() -> None:
    rows = [
        {"account": "root", "user": "", "depth": 0, "norm_shares": 1.0, "shares": None, "more": [1]},
        {"account": "phys", "user": "ann", "depth": 2, "shares": 40, "norm_shares": 0.4, "fair_share": 0.25},
    ]
    told = p.Told(msgspec.Raw(msgspec.json.encode({"rows": rows, "next": None})))
    lines = screen(board_of(Said(pluginquestion=told), "shares"))
    assert lines[5].split() == ["phys", "ann", "40", "0.4000", "0.0000", "0.0000", "0", "0.2500"]


def test_a_question_that_no_plugin_answers_says_so() -> None:
    assert "nothing is known of pluginquestion" in "\n".join(screen(board_of(Said(), "shares")))


# ---------------------------------------------------------------------- what is looked for


def test_words_are_looked_for_by_the_daemon_and_a_text_among_the_first_jobs() -> None:
    said = Said([waiting(n, name="wanted" if n == 90 else "other") for n in range(1, 101)])
    board = board_of(said)
    board.find("user=ann qos=high wanted")
    driven(board.look(ROOM), said)
    asked = said.asked[-1]
    assert isinstance(asked, p.Jobs)
    assert (asked.user, asked.qos, asked.first, asked.count) == ("ann", "high", 0, 500)
    lines = screen(board)
    assert lines[4].startswith(">90") and not lines[5].strip()
    assert "user ann, qos high, with 'wanted'" in lines[2]
    board.key("c", ROOM)
    driven(board.look(ROOM), said)
    assert screen(board)[4].startswith(">1 ")


def test_jobs_are_sorted_among_the_first_and_it_says_so() -> None:
    said = Said([waiting(n, planned_start=NOW - n) for n in range(1, 1000)])
    board = board_of(said)
    board.key("s", ROOM)
    driven(board.look(ROOM), said)
    assert screen(board)[4].startswith(">500")
    assert "sorted by start, among the first 500 jobs" in screen(board)[2]


def test_mine_status_and_pool_are_asked_of_the_daemon() -> None:
    said = Said([waiting(1)])
    board = board_of(said)
    for key in "mtp":
        board.key(key, ROOM)
    driven(board.look(ROOM), said)
    asked = said.asked[-1]
    assert isinstance(asked, p.Jobs)
    assert (asked.mine, asked.status, asked.pool) == (True, "pending", "batch")
    assert "pool batch, mine" in screen(board)[2]


def test_only_what_is_near_the_screen_is_asked_for() -> None:
    said = Said([waiting(n) for n in range(1, 5001)])
    board = board_of(said)
    asked = said.asked[-1]
    assert isinstance(asked, p.Jobs) and asked.count <= 60
    for _ in range(4):
        board.key("pagedown", ROOM)
    driven(board.look(ROOM), said)
    asked = said.asked[-1]
    assert isinstance(asked, p.Jobs) and asked.first > 0 and asked.count <= 60
    assert any(line.startswith(">") for line in screen(board)[4:21])


def test_the_picture_keeps_its_place_when_the_queue_gets_shorter() -> None:
    said = Said([waiting(n) for n in range(1, 200)])
    board = board_of(said)
    for _ in range(6):
        board.key("end", ROOM)
        driven(board.look(ROOM), said)
    said.jobs = said.jobs[:5]
    driven(board.look(ROOM), said)
    assert [line[:2] for line in screen(board)[4:9]] == [" 1", " 2", " 3", " 4", ">5"]


# ---------------------------------------------------------------------- a daemon that refuses, or is away


def test_a_daemon_that_is_away_is_told_with_its_time_and_the_picture_stays() -> None:
    said = Said([waiting(1)])
    board = board_of(said)
    said.instead = Failure("no daemon answers at s.sock; is `headway run` running with this configuration?")
    driven(board.look(ROOM), said)
    lines = screen(board)
    assert lines[2].startswith(
        "! Since 22:13:22: no daemon answers; is `headway run` running with this config"
    )
    assert "The picture is older" in lines[-1]
    assert lines[4].startswith(">1")
    assert board.patience(5.0) == 5.0
    said.instead = None
    driven(board.look(ROOM), said)
    assert not screen(board)[2].strip()


def test_a_plugin_that_fails_is_told_in_its_view_alone() -> None:
    said = Said([waiting(1)])

    def failing(request: p.AnyRequest) -> p.Reply | Failure:
        if isinstance(request, p.PluginQuestion):
            return p.Reply("failed", "plugin fair-tree failed at the question 'shares'", as_of=NOW)
        return said(request)

    board = board_of(failing, "shares")
    assert screen(board)[3].startswith("plugin fair-tree failed at the question 'shares'")
    assert not screen(board)[2].strip() and board.patience(5.0) == 5.0


def test_a_daemon_that_refuses_is_asked_less_often() -> None:
    said = Said([waiting(1)])
    board = board_of(said)
    said.instead = p.Reply("failed", "too many requests: at most 20 at once and 1 a second, no more")
    driven(board.look(ROOM), said)
    driven(board.look(ROOM), said)
    assert (
        "! Since 22:13:22: refused: too many requests: at most 20 at once and 1 a second" in screen(board)[2]
    )
    assert board.patience(5.0) == 20.0
    said.instead = None
    driven(board.look(ROOM), said)
    assert board.patience(5.0) == 5.0


def test_an_outage_of_the_cluster_is_told() -> None:
    said = Said([waiting(1)])
    said.status = msgspec.structs.replace(
        said.status, outages=(p.OutageReport("tc", NOW, "squeue: timeout"),)
    )
    assert screen(board_of(said))[2].startswith("! tc has not answered since 22:13:20: squeue: timeout")


# ---------------------------------------------------------------------- hostile texts, and any size


def hostile() -> Said:
    """Each text that a user or a batch system can choose is hostile."""
    bad = waiting(1, user=HOSTILE, account=HOSTILE, qos=HOSTILE, name=HOSTILE, why=HOSTILE)
    bad = msgspec.structs.replace(bad, waits_because=HOSTILE, waits_for=(HOSTILE,), id=HOSTILE, pool=HOSTILE)
    runs = running(2, HOSTILE, user=HOSTILE, name=HOSTILE, predicted_by=HOSTILE)
    node = NodeReport(HOSTILE, 4, 0, (HOSTILE,), False, HOSTILE, jobs=(HOSTILE, "2"), features=(HOSTILE,))
    row = {"account": HOSTILE, "user": HOSTILE}
    said = Said(
        [bad, runs],
        explain=p.Explained(HOSTILE, (HOSTILE,), bad, remembered=(HOSTILE,)),
        nodes=NodePage((node,)),
        bookings=BookingPage((BookingReport(HOSTILE, HOSTILE, 4, NOW, NOW + 60, HOSTILE, ((HOSTILE, 4),)),)),
        cycle=CycleReport(1, NOW, 0.1, 0.1, {HOSTILE: 1}, {}, (DecisionReport("Start", HOSTILE, HOSTILE),)),
        pluginquestion=p.Told(msgspec.Raw(msgspec.json.encode({"rows": [row]}))),
    )
    pool = p.PoolReport(HOSTILE, 4, 0, 1, 1)
    said.status = msgspec.structs.replace(
        said.status, pools=(pool,), cluster=HOSTILE, outages=(p.OutageReport(HOSTILE, NOW, HOSTILE),)
    )
    return said


@pytest.mark.parametrize("room", [ROOM, Room(40, 10), Room(200, 60), Room(7, 3)], ids=str)
@pytest.mark.parametrize("view", [*names(), "job", "help"])
def test_each_line_has_the_width_and_no_control_character(view: str, room: Room) -> None:
    said = hostile()
    board = board_of(said)
    if view == "job":
        board.open_job(HOSTILE)
    elif view == "help":
        board.key("question_mark", room)
    else:
        board.show(view)
    driven(board.look(room), said)
    board.shared.text = HOSTILE
    lines = screen(board, room)
    assert len(lines) == room.height
    for line in lines:
        assert cell_len(line) == room.width, line
        assert line.isprintable() and "\u202e" not in line


def test_the_help_is_whole_in_80_columns() -> None:
    from headway.cli.top.help import KEYS

    assert len(KEYS) + 3 <= ROOM.height - 4
    assert all(len(means) <= ROOM.width - 15 for _, means in KEYS)


def test_names_of_wide_characters_keep_the_columns_in_line() -> None:
    said = Said([waiting(1, user="漢字漢字漢字漢字"), waiting(2)])
    first, second = screen(board_of(said))[4:6]
    at = second.index("batch")
    assert cell_len(first[: first.index("batch")]) == at
    assert "漢字漢字" in first


def test_what_is_shown_says_everything_without_colours() -> None:
    """The row that is pointed at and the view that is open have marks."""
    lines = screen(board_of(Said([waiting(1)])))
    assert lines[1].startswith("[1 queue]") and lines[4].startswith(">")


def test_a_job_of_a_user_is_not_there_for_another() -> None:
    ask = Scheduled(job("1", 8), job("2", 16, user="ben"), user="ann", private=True)
    lines = screen(board_of(ask))
    assert "only your own jobs are shown" in lines[2]
    assert not any("ben" in line for line in lines)


# ---------------------------------------------------------------------- how often the daemon is asked


def test_no_more_is_asked_than_leaves_room_for_the_users_other_commands() -> None:
    """Somebody who holds a key down for ten minutes, by the daemon's own limits."""
    now, refused = [0.0], 0
    limits = Limits(clock=lambda: now[0])
    said = Said([waiting(n) for n in range(1, 5001)])

    def limited(request: p.AnyRequest) -> p.Reply | Failure:
        nonlocal refused
        refused += not limits.take("ann", False)
        return said(request)

    boards = [board_of(limited, pace=Pace(clock=lambda: now[0])) for _ in range(2)]
    for second in range(600):
        now[0] = float(second)
        boards[0].key("pagedown", ROOM)
        for board in boards[: 2 if second % 5 == 0 else 1]:
            driven(board.look(ROOM), limited)
    assert refused == 0


def test_what_is_left_out_for_that_is_said_and_comes_soon() -> None:
    now = [0.0]
    said = Said([waiting(1)])
    board = board_of(said, pace=Pace(Allowance(1, 0.5), clock=lambda: now[0]))
    assert board.lacks(ROOM)
    assert "the rest is asked for later" in screen(board)[2]
    assert board.patience(60.0) == 2.0
    now[0] = 2.0
    driven(board.look(ROOM), said)
    assert not board.lacks(ROOM)
    assert screen(board)[4].startswith(">1")
