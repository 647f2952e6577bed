"""Resource requirement strings, and what of them a request can say."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway_adapters.lsf.resreq import Asked, Host, Requirements

MIB = 1 << 20
HOSTS = {
    "a1": Host("a1", "X86_64", "Fast", 16, 64 << 30, 0, frozenset({"bigmem", "mg"})),
    "a2": Host("a2", "X86_64", "Slow", 8, 16 << 30, 0, frozenset({"mg"})),
    "p1": Host("p1", "POWER", "Slow", 8, 16 << 30, 0, frozenset()),
}


def asked(text: str, local: str = "X86_64") -> Asked:
    return Requirements(HOSTS).read(text, local)


@pytest.mark.parametrize("text", ["", "-", "order[r15s:pg]", "select[type == any] order[ut]", "select[]"])
def test_what_asks_for_nothing(text: str) -> None:
    assert asked(text) == Asked()


def test_the_default_selection_means_hosts_like_the_one_it_was_submitted_from() -> None:
    assert asked("select[type == local] order[r15s:pg]").excluded == ("p1",)
    assert asked("select[type == local] order[r15s:pg]", local="").excluded == ()


@pytest.mark.parametrize(
    ("text", "nodes", "per_node", "memory"),
    [
        ("span[hosts=1]", 1, 0, 0),
        ("span[hosts=-1]", 0, 0, 0),
        ("span[ptile=4]", 0, 4, 0),
        ("rusage[mem=10]", 0, 0, 10 * MIB),
        ("rusage[mem=10.00]", 0, 0, 10 * MIB),
        ("rusage[mem=4G]", 0, 0, 4 << 30),
        ("rusage[mem=100MB:duration=10]", 0, 0, 100 * MIB),
        ("rusage[mem=100,swp=50]", 0, 0, 100 * MIB),
        ("select[type == any] span[ptile=2] rusage[mem=1024]", 0, 2, 1024 * MIB),
        ("select[mem>1000 && swp>10] span[hosts=1]", 1, 0, 0),
    ],
)
def test_spans_and_memory(text: str, nodes: int, per_node: int, memory: int) -> None:
    found = asked(text)
    assert (found.nodes, found.per_node, found.memory) == (nodes, per_node, memory)
    assert not found.unfit and not found.notes


@pytest.mark.parametrize(
    ("text", "excluded"),
    [
        ("select[type==X86_64]", ("p1",)),
        ("select[type!=X86_64]", ("a1", "a2")),
        ("select[model == Fast || type == POWER]", ("a2",)),
        ("select[hname == a2]", ("a1", "p1")),
        ("select[hname != 'a2']", ("a2",)),
        ("select[ncpus >= 16]", ("a2", "p1")),
        ("select[maxmem > 20000]", ("a2", "p1")),
        ("select[maxmem > 20G]", ("a2", "p1")),
        ("select[!bigmem]", ("a1",)),
        ("select[bigmem || ncpus==8]", ()),
        ("select[(mg && !bigmem)]", ("a1", "p1")),
        ("select[bigmem == 0]", ("a1",)),
        ("type==POWER", ("a1", "a2")),
    ],
)
def test_selections_exclude_the_hosts_that_do_not_satisfy_them(text: str, excluded: tuple[str, ...]) -> None:
    assert asked(text).excluded == excluded


def test_boolean_resources_are_features() -> None:
    found = asked("select[bigmem && mg]")
    assert found.features == ("bigmem", "mg") and found.excluded == ()


@pytest.mark.parametrize(
    "text",
    [
        "same[type:model]", "cu[type=enclosure]", "affinity[core(2)]", "rusage[licences=2]",
        "select[license1]",
        "span[stripe]", "span[ptile='!',HP:8]", "span[block=4]",
    ],
)  # fmt: skip
def test_what_is_not_kept_is_noted(text: str) -> None:
    found = asked(text)
    assert found.notes and not found.unfit and not found.excluded


@pytest.mark.parametrize(
    "text",
    [
        "2*{select[mg] rusage[mem=10]} + 3*{rusage[mem=5]}", "{select[mg]} || {select[bigmem]}",
        "rusage[mem=10 || mem=20]", "select[(mg]", "select[mg &&]", "select[== 3]", "select[mg mg]",
        "select[" + "(" * 100 + "mg" + ")" * 100 + "]", "select[mg] trailing", "select[a ~ b]",
    ],
)  # fmt: skip
def test_what_we_cannot_read_makes_a_job_unfit(text: str) -> None:
    assert "cannot be expressed" in asked(text).unfit


@pytest.mark.parametrize(
    "item", ["ngpus_physical=1.00", "ngpus_physical=2:gmodel=TeslaV100", "ngpus_physical=1:gmem=8G"]
)
def test_gpus_that_lsf_alone_counts_make_a_job_unfit(item: str) -> None:
    assert "GPUs of bsub -gpu are counted by LSF's own scheduler alone" in asked(f"rusage[{item}]").unfit
    assert not asked("rusage[ngpus_physical=0.00]").unfit


def test_more_memory_than_any_host_has_is_asked_for_and_not_forgotten() -> None:
    for amount in ("1e999", "9" * 5000, "8191T"):
        assert asked(f"rusage[mem={amount}]").memory > max(host.memory for host in HOSTS.values())
    assert set(asked("select[maxmem > 1e999]").excluded) == set(HOSTS)


@given(
    st.text(max_size=80)
    | st.from_regex(r"(select|span|rusage)\[[a-z0-9=<>!&|() ]{0,30}\]", fullmatch=True)
    | st.from_regex(r"(rusage\[mem=|span\[ptile=|select\[ncpus>)(9{1,4400}|1e[0-9]{1,4})\]", fullmatch=True)
)
def test_no_text_breaks_the_reading(text: str) -> None:
    found = asked(text)
    assert set(found.excluded) <= set(HOSTS)
    assert found.nodes in (0, 1) and found.per_node >= 0 and found.memory >= 0
