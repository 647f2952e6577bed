"""Host lists: Slurm's brackets and back."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway_adapters.slurm.hostlist import compress, expand

FIXTURES = Path(__file__).parent / "fixtures" / "slurm-22.05"

NAMES = st.from_regex(r"[a-z]{1,3}(-[a-z])?[0-9]{0,3}(x[0-9]{1,2})?", fullmatch=True)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("", ()),
        ("n1", ("n1",)),
        ("n[1-3,07-10],x", ("n1", "n2", "n3", "n07", "n08", "n09", "n10", "x")),
        ("n[08-11]", ("n08", "n09", "n10", "n11")),
        ("n[9-11]", ("n9", "n10", "n11")),
        ("r[1-2]n[1-2]", ("r1n1", "r1n2", "r2n1", "r2n2")),
        ("a,b[3],c-d.e[1-2]-ib", ("a", "b3", "c-d.e1-ib", "c-d.e2-ib")),
    ],
)
def test_brackets_are_expanded(text: str, names: tuple[str, ...]) -> None:
    assert expand(text) == names


def test_expansion_is_slurms_own() -> None:
    expected = (FIXTURES / "hostnames.txt").read_text().split()
    assert list(expand("node[1-3,7],gpu[01-02]")) == expected


@pytest.mark.parametrize("text", ["n[1-", "n1]", "n[x]", "n[3-1]", "n[1-99999999]", "n[1-1000]m[1-9999]"])
def test_a_broken_list_is_an_error(text: str) -> None:
    with pytest.raises(ValueError, match="host list"):
        expand(text)


@pytest.mark.parametrize(
    ("names", "text"),
    [
        ((), ""),
        (("node3", "node1", "node2", "gpu01"), "gpu01,node[1-3]"),
        (("n08", "n09", "n10"), "n[08-10]"),
        (("n9", "n10", "n10"), "n[9-10]"),
        (("n1", "n01"), "n1,n01"),
    ],
)
def test_names_are_compressed(names: tuple[str, ...], text: str) -> None:
    assert compress(names) == text


@given(st.lists(NAMES, max_size=60))
def test_what_is_compressed_expands_to_the_same_names(names: list[str]) -> None:
    expanded = expand(compress(names))
    assert sorted(expanded) == sorted(set(names))
