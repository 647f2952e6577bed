"""The fence on PBS: what carries an epoch, and what the server's answers mean."""

from __future__ import annotations

import json
import runpy
import sys
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from pretended import result

from headway.adapter import Seen
from headway.errors import Failure, Superseded
from headway.inputs.shipped import shipped
from headway_adapters.pbs import fence
from headway_adapters.pbs.fence import ASK, PbsFence
from headway_adapters.transport import Result


class Server:
    """A server that keeps what its manager sets; ``knows``: the resources are there."""

    def __init__(self, *, knows: bool = True) -> None:
        self.kept: dict[str, Any] = {}
        self.knows = knows
        self.asked: list[tuple[str, ...]] = []

    def __call__(self, argv: Sequence[str]) -> Result:
        words = tuple(argv)
        self.asked.append(words)
        if words == ASK:
            attributes = {"resources_available": self.kept} if self.kept else {}
            return result(words, json.dumps({"Server": {"pbsa": attributes}}))
        if words[0] == "qmgr" and words[2].startswith("set server resources_available.") and self.knows:
            name, _, value = words[2].removeprefix("set server resources_available.").partition(" = ")
            self.kept[name] = int(value) if value.isdecimal() else value
            return result(words, "")
        return result(words, "", rc=1, stderr="qmgr obj= svr=default: Unknown resource")


def led(server: Server, epoch: int, name: str) -> PbsFence:
    one = PbsFence(server, lambda result: False)
    one.lead(epoch, name)
    return one


@pytest.mark.parametrize(
    ("placed", "carried"),
    [
        ("(pbsb:ncpus=2)", "(pbsb:ncpus=2:headway_epoch=7)"),
        ("(a[0]:ncpus=1:mem=2kb)+(b:ncpus=1)", "(a[0]:ncpus=1:mem=2kb:headway_epoch=7)+(b:ncpus=1)"),
    ],
)
def test_a_start_carries_the_epoch_in_its_first_chunk(placed: str, carried: str) -> None:
    one = led(Server(), 7, "me")
    assert one.is_known
    assert one.stamped(("qrun", "-H", placed, "1.a", "2.a")) == ("qrun", "-H", carried, "1.a", "2.a")
    assert one.stamped(("qdel", "1.a")) == ("qdel", "1.a")


def test_a_server_without_the_resources_is_driven_as_before() -> None:
    one = led(Server(knows=False), 7, "me")
    assert not one.is_known
    assert one.stamped(("qrun", "-H", "(b:ncpus=1)", "1.a")) == ("qrun", "-H", "(b:ncpus=1)", "1.a")
    assert one.overtaken([("qdel", "1.a")]) == 0


def test_without_its_commands_it_is_the_same() -> None:
    def gone(argv: Sequence[str]) -> Result:
        raise Failure("no qmgr here")

    one = PbsFence(gone, lambda result: False)
    one.lead(1, "me")
    assert not one.is_known


def test_the_highest_number_counts_and_of_two_with_the_same_the_first() -> None:
    server = Server()
    first = led(server, 7, "first")
    assert first.seen() == Seen(7) and first.higher() == 0
    for epoch in (7, 6):
        with pytest.raises(Superseded, match="PBS knows epoch 7"):
            led(server, epoch, "other")
    led(server, 7, "first")
    led(server, 8, "other")
    assert first.higher() == 8


@pytest.mark.parametrize(
    ("epoch", "leader", "highest"),
    [(8, "other", 8), (8, "", 8), (7, "other", 7), (7, "me", 0), (7, "", 0), (6, "other", 0), (6, "", 0)],
)
def test_who_has_taken_over(epoch: int, leader: str, highest: int) -> None:
    """As with Slurm: a number that has no name is this daemon's own, if it is the same."""
    server = Server()
    one = led(server, 7, "me")
    server.kept = {"headway_epoch": epoch, **({"headway_leader": leader} if leader else {})}
    assert one.higher() == highest


@pytest.mark.parametrize("kept", [None, 7, {}, {"headway_epoch": "nonsense"}, {"headway_epoch": -3}])
def test_answers_that_say_nothing(kept: object) -> None:
    text = json.dumps({"Server": {"a": {"resources_available": kept}}})
    assert fence.read(result(ASK, text)) == (0, "")
    assert fence.read(result(ASK, text[:-3])) == (0, "")
    assert fence.read(result(ASK, "", rc=1, stderr="qstat: what?")) == (0, "")


@pytest.mark.parametrize(
    ("resource", "hook", "verdict", "words"),
    [
        ((0, "Resource headway_epoch"), (0, "enabled = true\n event = runjob"), "ok", "epoch 7"),
        (
            (0, "Resource headway_epoch"),
            (1, "headway@a is unauthorized to access hooks data"),
            "?",
            "only root",
        ),
        ((0, "Resource headway_epoch"), (1, "hook not found"), "FAIL", "is not there"),
        ((0, "Resource headway_epoch"), (0, "enabled = false\n event = runjob"), "FAIL", "not enabled"),
        # It has to be installed, and headway drives without.
        ((1, "Unknown resource"), (1, ""), "ok", "none: what a paused daemon"),
    ],
)
def test_headway_check_says_whether_it_is_there(
    resource: tuple[int, str], hook: tuple[int, str], verdict: str, words: str
) -> None:
    def ask(argv: Sequence[str]) -> Result:
        rc, said = hook if "hook" in argv[2] else resource
        return result(tuple(argv), said, rc=rc)

    found = fence.check(ask, {"resources_available": {"headway_epoch": 7}})
    assert verdict == ("FAIL" if not found.ok else "ok" if found.known else "?")
    assert words in found.detail and (verdict == "ok" or found.remedy)


def test_the_guide_says_how_it_is_installed() -> None:
    text = shipped("pbs/README.md").read_text()
    assert "\n".join(fence.INSTALL) in text.replace("/opt/headway/share/headway/etc/pbs/", "")
    hook = shipped("pbs/headway_fence.py").read_text()
    assert all(line in hook for line in fence.INSTALL)


@pytest.fixture
def hook(monkeypatch: pytest.MonkeyPatch) -> Callable[[str | None, int | None], str]:
    """The shipped hook, as PBS runs it: what it says of a start on ``exec_vnode``."""

    def run(exec_vnode: str | None, highest: int | None) -> str:
        said: list[str] = []
        event = SimpleNamespace(
            job=SimpleNamespace(exec_vnode=exec_vnode), reject=said.append, accept=lambda: said.append("")
        )
        server = SimpleNamespace(resources_available={"headway_epoch": highest})
        pbs = SimpleNamespace(event=lambda: event, server=lambda: server)
        monkeypatch.setitem(sys.modules, "pbs", pbs)
        runpy.run_path(str(shipped("pbs/headway_fence.py")))
        return said[0]

    return run


@pytest.mark.parametrize(
    ("exec_vnode", "highest", "said"),
    [
        ("(b:ncpus=1:headway_epoch=6)", 7, "headway fence: epoch=7"),
        ("(b:ncpus=1:headway_epoch=7)+(c:ncpus=1)", 7, ""),
        ("(b:ncpus=1:headway_epoch=8)", 7, ""),
        ("(b:headway_epoch=6)", 7, "headway fence: epoch=7"),
        ("(b:ncpus=1)", 7, ""),
        ("(b:ncpus=1:headway_epoch=6)", None, ""),
        (None, 7, ""),
        ("(b:ncpus=1:my_headway_epoch=6)", 7, ""),
    ],
)
def test_the_hook(hook: Callable[..., str], exec_vnode: str | None, highest: int | None, said: str) -> None:
    assert hook(exec_vnode, highest) == said
