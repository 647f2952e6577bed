"""The page of a paper's claims: written and read again."""

from __future__ import annotations

import pytest

from headway.errors import UserError
from headway.experiment.claims_page import (
    Broken,
    Call,
    Claim,
    broken_rules,
    claims_page,
    claims_table,
    tables_of,
)

CLAIMS = [
    Claim("Figure 1", "a is better", "+3 %", "yes"),
    Claim("Figure 2", "b", "-1 %", "no", "smaller: 0.5"),
]


@pytest.mark.parametrize(
    "call",
    [
        Call("los", 10),
        Call("sareg", 3, traces=True),
        Call("ejb", 10, ('names=["KTH"]', "targets=150", "note=with blanks"), traces=True),
    ],
)
def test_the_command_of_a_page_is_read_as_it_was(call):
    page = claims_page("A paper", str(call), CLAIMS, None, {})
    assert Call.of(page) == call


def test_settings_are_written_as_a_shell_takes_them():
    assert (
        str(Call("ejb", 2, ('names=["KTH"]',))) == "headway reproduce ejb --seeds 2 --set 'names=[\"KTH\"]'"
    )


@pytest.mark.parametrize(
    "page",
    ["# A paper\n", "`headway reproduce los`", "`headway reproduce los --seeds`",
     "`headway reproduce los --seeds x`", "`headway reproduce los --set 'a`"],
)  # fmt: skip
def test_a_page_of_no_command_says_so(page):
    with pytest.raises(UserError, match="does not name the command that made it"):
        Call.of(page)


def test_tables_of_claims_are_found_among_others():
    other = "| a | b |\n|---|---|\n| 1 | 2 |\n\n"
    page = f"{other}{claims_table(CLAIMS)}\ntext | holds?\n\n{claims_table(CLAIMS[:1])}"
    assert [table[0] for table in tables_of(page)] == [claims_table(CLAIMS), claims_table(CLAIMS[:1])]


def test_a_broken_rule_stands_once_with_all_its_experiments():
    broken = {
        "one": [Broken("3", "too few workloads", "one trace")],
        "two": [Broken("3", "too few workloads", "two traces"), Broken("28", "warm-up kept", "none")],
    }
    text = broken_rules(broken)
    assert "\n- 3 too few workloads: one, two. one trace\n- 28 warm-up kept: two. none\n" in text
    assert broken_rules({"one": []}).endswith("\n\nNone.\n")
    assert broken_rules({}) == ""
