"""The fence: what carries an epoch, what the submit filter refuses, and what a daemon makes of that."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lua_filter import HEARTBEAT, LuaFilter
from pretended import result
from pretended_slurm import PretendedSlurm
from test_slurm_adapter_unit import adapter

from headway.adapter import Seen
from headway.errors import Failure, Superseded, UserError
from headway_adapters.polling import fence as common
from headway_adapters.slurm import fence, marker
from headway_adapters.slurm.fence import SlurmFence, read_answer
from headway_adapters.slurm.reader.documents import JobRecord
from headway_adapters.transport import Result

FILE = "/var/lib/slurm/slurmctld/headway.epoch"
REFUSED, DENIED = "27182", "2002"
RELEASE = {"priority": 4294967295}


def answering(text: str, rc: int = 1) -> Callable[[str], Result]:
    return lambda question: result(("sbatch", question), "", rc=rc, stderr=f"sbatch: error: {text}")


def led(epoch: int, *, knows: bool = True) -> SlurmFence:
    said = f"headway fence: epoch={epoch} by=me heard=0" if knows else "Unable to allocate resources"
    made = SlurmFence(answering(said))
    made.lead(epoch, "me")
    return made


# ---------------------------------------------------------------------- what is written


@pytest.mark.parametrize(
    ("command", "known", "unknown"),
    [
        (
            "scontrol update JobId=5 Priority=0 AdminComment=headway:held;nodes=any",
            "scontrol update JobId=5 Priority=0 AdminComment=headway:held;nodes=any;epoch=7",
            "scontrol update JobId=5 Priority=0 AdminComment=headway:held;nodes=any;epoch=7",
        ),
        (
            "scontrol update JobId=5 AdminComment=headway:held;epoch=3",
            "scontrol update JobId=5 AdminComment=headway:held;epoch=7",
            "scontrol update JobId=5 AdminComment=headway:held;epoch=7",
        ),
        (
            "scontrol update JobId=5 Priority=0 AdminComment=hold: by headway",
            "scontrol update JobId=5 Priority=0 AdminComment=hold: by headway;epoch=7",
            "scontrol update JobId=5 Priority=0 AdminComment=hold: by headway;epoch=7",
        ),
        (
            "scontrol update JobId=5 TimeLimit=3",
            "scontrol update JobId=5 TimeLimit=3 AdminComment=headway:same;epoch=7",
            "scontrol update JobId=5 TimeLimit=3",
        ),
        (
            "scontrol release 5,6",
            "scontrol update JobId=5,6 Priority=1 AdminComment=headway:release;epoch=7",
            "scontrol release 5,6",
        ),
        (
            "scontrol hold 5",
            "scontrol update JobId=5 Priority=0 AdminComment=headway:same;epoch=7",
            "scontrol hold 5",
        ),
        # No filter sees these.
        ("scontrol requeue 5", "scontrol requeue 5", "scontrol requeue 5"),
        ("scontrol update NodeName=n State=DRAIN", "scontrol update NodeName=n State=DRAIN", ""),
        ("scancel 5", "scancel 5", "scancel 5"),
        ("squeue --json", "squeue --json", "squeue --json"),
    ],
)
def test_what_carries_the_epoch(command: str, known: str, unknown: str) -> None:
    words = _words(command)
    assert led(7).stamped(words) == tuple(_words(known))
    assert led(7, knows=False).stamped(words) == tuple(_words(unknown or command))
    assert SlurmFence(answering("")).stamped(words) == tuple(words), "who leads nothing writes none"


def _words(command: str) -> list[str]:
    front, mark, comment = command.partition("AdminComment=")
    return [*front.split(), *([mark + comment] if mark else [])]


@given(
    st.integers(1, 10**15 - 1), st.sampled_from(["headway:held", "headway:pin=n1;asked=;run=0", "hold: x"])
)
def test_the_epoch_is_no_part_of_a_mark_that_is_read(epoch: int, mark: str) -> None:
    written = f"{mark};epoch={epoch}"
    assert marker.without_epoch(written) == mark
    assert JobRecord(admin_comment=written).admin_comment == mark
    assert marker.without_epoch(mark) == mark


def test_a_command_that_no_filter_sees_comes_after_a_question(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(common.time, "monotonic", lambda: now[0])
    asked: list[str] = []

    def ask(question: str) -> Result:
        asked.append(question)
        return answering(f"headway fence: epoch={7 + (now[0] > 200)} by=me heard=0")(question)

    one = SlurmFence(ask)
    one.lead(7, "me")
    seen, unseen = ("scontrol", "update", "JobId=5", "Priority=0"), ("scancel", "5")
    now[0] += 0.5
    assert one.overtaken([unseen]) == 0 and len(asked) == 1, "it was heard a moment ago"
    now[0] += 2
    assert one.overtaken([seen]) == 0 and len(asked) == 1, "the filter refuses it by itself"
    assert one.overtaken([seen, unseen]) == 0 and len(asked) == 2
    now[0] += 200
    assert one.overtaken([unseen]) == 8


@pytest.mark.parametrize(
    ("said", "highest"),
    [
        ("headway fence: epoch=8 by=other heard=0", 8),
        ("headway fence: epoch=7 by=other heard=0", 7),
        ("headway fence: epoch=7 by=me heard=0", 0),
        ("headway fence: epoch=7 by= heard=never", 0),
        ("headway fence: epoch=8 by= heard=never", 8),
        ("headway fence: epoch=6 by=other heard=0", 0),
        ("headway fence: epoch=6 by= heard=never", 0),
        ("nothing of that kind", 0),
    ],
)
def test_who_has_taken_over(said: str, highest: int) -> None:
    one = led(7)
    one._ask = answering(said)
    assert one.higher() == highest


def test_what_the_filter_says() -> None:
    assert read_answer(
        "x\nsbatch: error: headway fence: epoch=12 by=ab1 heard=never unsaved\n"
    ) == fence.Answer(12, "ab1", None, saved=False)
    assert read_answer("headway fence: epoch=0 by= heard=4 stranger") == fence.Answer(0, "", 4, stranger=True)
    assert read_answer("Job 1 to start at 2026") is None
    assert SlurmFence(answering("headway fence: epoch=3 by=x heard=5")).seen() == Seen(
        3, "it wrote to Slurm 5 s ago"
    )
    assert SlurmFence(answering("headway fence: epoch=3 by=x heard=500")).seen() == Seen(3)
    with pytest.raises(UserError, match=r"\[995\] = true"):
        SlurmFence(answering("headway fence: user 995 is not among LEADERS of job_submit.lua")).lead(1, "x")


@pytest.mark.parametrize(
    ("said", "ok", "words"),
    [
        ("headway fence: epoch=3 by=x heard=5", True, "epoch 3, heard 5 s ago"),
        ("headway fence: epoch=0 by= heard=never", True, "epoch none"),
        ("headway fence: epoch=3 by=x heard=5 unsaved", False, "cannot write FENCE"),
        ("headway fence: epoch=3 by=x heard=5 stranger", False, "does not take this user"),
        ("Invalid account", False, "knows none"),
    ],
)
def test_headway_check_says_whether_the_filter_knows_it(said: str, ok: bool, words: str) -> None:
    found = fence.check(SlurmFence(answering(said)))
    assert found.ok is ok and words in found.detail and bool(found.remedy) is not ok


# ---------------------------------------------------------------------- the filter


@pytest.fixture
def lua() -> Iterator[LuaFilter]:
    made = LuaFilter()
    yield made
    made.close()


def write(lua: LuaFilter, mark: str, before: str = "", user: int = 0, **change: object) -> dict[str, str]:
    record = {"admin_comment": before, "priority": 0}
    return lua.modify(record, {"admin_comment": mark, **change}, user)


def test_the_highest_epoch_counts(lua: LuaFilter) -> None:
    assert lua.ask("headway:epoch?") == "headway fence: epoch=0 by= heard=never"
    assert lua.ask("headway:lead=3:abc") == "headway fence: epoch=3 by=abc heard=0"
    # Of two that take the same number the first has it; who has it may say so again.
    assert lua.ask("headway:lead=3:xyz").startswith("headway fence: epoch=3 by=abc")
    assert lua.ask("headway:lead=2:xyz").startswith("headway fence: epoch=3 by=abc")
    assert lua.ask("headway:lead=3:abc").startswith("headway fence: epoch=3 by=abc")
    assert write(lua, "headway:held;epoch=2")["code"] == REFUSED
    assert write(lua, "headway:held;epoch=3")["code"] == "0"
    # A write tells a new one as well.
    assert write(lua, "headway:held;epoch=4")["code"] == "0"
    assert write(lua, "hold: by headway;epoch=3")["code"] == REFUSED
    assert lua.ask("headway:lead=4:xyz").startswith("headway fence: epoch=4 by=xyz")


def test_a_daemon_that_ends_is_not_taken_for_alive(lua: LuaFilter) -> None:
    lua.ask("headway:lead=3:abc")
    for other in ("headway:leave=2:abc", "headway:leave=3:xyz"):
        assert "heard=0" in lua.ask(other)
    assert "is not among LEADERS" in lua.ask("headway:leave=3:abc", 1000)
    assert lua.ask("headway:leave=3:abc") == "headway fence: epoch=3 by=abc heard=never"
    # What it writes after that is its own all the same, and what another wrote before is late.
    assert write(lua, "headway:held;epoch=2")["code"] == REFUSED


def test_people_and_earlier_versions_are_not_refused(lua: LuaFilter) -> None:
    lua.ask("headway:lead=9:abc")
    for mark in ("headway:held", "", "hold: for a while", "my ticket;epoch=1"):
        assert write(lua, mark)["code"] == "0"
    assert lua.modify({"priority": 0, "admin_comment": "headway:held;epoch=1"}, RELEASE, 0)["code"] == "0"


def test_what_only_carries_an_epoch_leaves_the_mark(lua: LuaFilter) -> None:
    found = write(lua, "headway:same;epoch=3", "headway:pin=n1;epoch=2", time_limit=5)
    # Slurm takes that for no comment.
    assert found == {"code": "0", "admin_comment": "", "time_limit": "5"}
    assert write(lua, "headway:same;epoch=3", "a ticket")["admin_comment"] == ""
    # Of an array's other elements it comes so.
    assert write(lua, "", "headway:new", user=0)["code"] == "0"
    found = write(lua, "headway:release;epoch=3", "headway:pin=n1;epoch=3", priority=1)
    assert found["code"] == "0" and float(found["priority"]) == 4294967295
    assert found["admin_comment"] == ""
    assert lua.modify({"priority": 0, "admin_comment": "headway:new"}, {"admin_comment": ""}, 0) == {
        "code": "0", "admin_comment": "",
    }  # fmt: skip


@pytest.mark.parametrize("mark", ["headway:release;epoch=3", None])
def test_what_was_pinned_under_an_older_epoch_is_not_released(lua: LuaFilter, mark: str | None) -> None:
    lua.clock(2000, 1_001_000)
    lua.beat(2000, 1_001_000)
    lua.ask("headway:lead=3:abc")
    change = RELEASE if mark is None else {"admin_comment": mark, "priority": 1}
    pinned = {"priority": 0, "admin_comment": "headway:pin=n1;epoch=2"}
    assert lua.modify(pinned, change, 0)["code"] == REFUSED
    # Nobody drives: by hand it may be released.
    lua.file(HEARTBEAT, "headway rests at=1001000\n")
    assert lua.modify(pinned, change, 0)["code"] == (REFUSED if mark else "0")


def test_a_user_forges_none(lua: LuaFilter) -> None:
    lua.ask("headway:lead=3:abc")
    assert "user 1000 is not among LEADERS" in lua.ask("headway:lead=99:x", 1000)
    assert write(lua, "headway:held;epoch=99", user=1000)["code"] == DENIED
    assert write(lua, "headway:held;epoch=99", user=2000)["code"] == DENIED
    assert lua.ask("headway:epoch?", 1000) == "headway fence: epoch=3 by=abc heard=0 stranger"
    for mark in ("headway:held;epoch=9", "hold: by headway;epoch=9"):
        assert lua.do(
            f'local job = {{ partition = "batch", max_nodes = 1, admin_comment = "{mark}" }} '
            "slurm_job_submit(job, {}, 1000) return job.admin_comment"
        ) == "headway:new"  # fmt: skip


def test_a_user_makes_no_daemon_seem_alive(lua: LuaFilter) -> None:
    lua.ask("headway:lead=3:abc")
    lua.ask("headway:leave=3:abc")
    assert write(lua, "headway:same;epoch=3", user=1000)["code"] == DENIED
    assert lua.ask("headway:epoch?") == "headway fence: epoch=3 by=abc heard=never"
    assert write(lua, "headway:same;epoch=3")["code"] == "0"
    assert lua.ask("headway:epoch?") == "headway fence: epoch=3 by=abc heard=0"


def test_it_is_known_after_a_restart(lua: LuaFilter) -> None:
    lua.ask("headway:lead=3:abc")
    assert lua.do(f'return FILES["{FILE}"]') == "3 abc\n"
    again = LuaFilter()
    again.file(FILE, "3 abc\n")
    again.do('slurm.jobs = { [5] = { admin_comment = "headway:held;epoch=2" }, [6] = {} }')
    assert again.ask("headway:epoch?") == "headway fence: epoch=3 by=abc heard=never"
    again.close()
    without = LuaFilter()
    without.file(FILE, "\0nonsense")
    without.do(
        'slurm.jobs = { [5] = { admin_comment = "headway:held;epoch=4" }, [6] = { admin_comment = "x" } }'
    )
    assert without.ask("headway:epoch?") == "headway fence: epoch=4 by= heard=never"
    without.close()


def test_a_file_that_cannot_be_written_is_said(lua: LuaFilter) -> None:
    lua.do("FULL = true")
    assert lua.ask("headway:lead=3:abc") == "headway fence: epoch=3 by=abc heard=0 unsaved"
    lua.do("FULL = false")
    assert lua.ask("headway:lead=4:abc") == "headway fence: epoch=4 by=abc heard=0"


# ---------------------------------------------------------------------- the adapter


class Overtaken(PretendedSlurm):
    """Another daemon takes over as soon as ``taken`` is set."""

    taken = False

    def feed(self, argv, given, timeout):  # type: ignore[no-untyped-def]
        said = f"headway fence: epoch={8 if self.taken else 7} by={'other' if self.taken else 'me'} heard=0"
        return result(tuple(argv), "", rc=1, stderr=f"sbatch: error: {said}")


def test_a_daemon_that_is_refused_changes_nothing_any_more() -> None:
    slurm = Overtaken()
    with adapter(slurm) as one:
        one.describe()
        one.lead(7, "me")
        assert one.wait(None) is not None
        slurm.taken = True
        slurm.answer = lambda argv: (
            result(argv, "", rc=1, stderr="Unknown error 27182 for job 1") if "update" in argv else None
        )
        assert one._client.change_all([("scontrol", "hold", "1")])[0] is not None
        with pytest.raises(Failure, match="another daemon has taken over: Slurm knows epoch 8"):
            one._client.change_all([("scontrol", "update", "JobId=1", "Priority=0")])
        with pytest.raises(Superseded, match="epoch 8"):
            one.wait(None)


def test_a_refusal_of_another_kind_is_no_reason_to_end() -> None:
    slurm = Overtaken()
    with adapter(slurm) as one:
        one.describe()
        one.lead(7, "me")
        slurm.answer = lambda argv: (
            result(argv, "", rc=1, stderr="Unknown error 27182 for job 1") if "update" in argv else None
        )
        one._client.change_all([("scontrol", "hold", "1")])
        assert not one._client.lost


def test_a_number_that_another_has_already_is_refused() -> None:
    slurm = Overtaken()
    slurm.taken = True
    with adapter(slurm) as one:
        one.describe()
        with pytest.raises(Superseded):
            one.lead(7, "me")
