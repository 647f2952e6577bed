"""The claims on ScoPred: each table and each sentence that has figures, from the printed means."""

from __future__ import annotations

from dataclasses import replace

import pytest

from headway.experiment.reproduction import Context
from headway_plugins.reproductions.scopred import ScopredReproduction, claims_of, find


@pytest.fixture(scope="module")
def found():
    return find()


def held(found):
    return {claim.where: claim.holds for claim in claims_of(found)}


def test_acceptance_6_all_holds_but_table_4_and_what_the_text_says_wrongly(found):
    wrong = {where for where, holds in held(found).items() if holds != "yes"}
    assert wrong == {"Table 4", "EP, both", "text to Table 3", "text to Table 14", "Table 10"}


@pytest.mark.parametrize(
    ("table", "claim"),
    [
        ("2", "EP, more nodes"),
        ("3", "EP, larger problem"),
        ("6", "FT class A, more nodes"),
        ("7", "FT class B, more nodes"),
        ("8", "FT, larger problem"),
        ("9", "FT, both"),
        ("11", "FT by parts"),
        ("13", "HPL, more nodes"),
        ("14", "HPL, larger problem"),
        ("17", "HPL on 16 nodes, without 6000 and 4x4"),
        ("18", "HPL on 16 nodes, without 9000 and 16x1"),
    ],
)
def test_each_claim_can_fail(found, table, claim):
    off = [
        replace(one, ours=2.6 * one.ours, error=160 + one.error) if one.case.table == table else one
        for one in found
    ]
    assert held(off)[claim] != "yes"
    assert held(off)[f"Table {table}"] == "no"


def test_a_run_writes_its_rows(tmp_path):
    context = Context(tmp_path, (1,), 1, None, lambda *_: None, lambda _: None, [])
    claims = ScopredReproduction().run(context)
    assert len(claims) == 29
    ((name, rows),) = context.rows
    assert (name, len(rows)) == ("predictions", 112)
