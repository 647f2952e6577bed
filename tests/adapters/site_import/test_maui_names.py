"""`headway import maui`: all names that Maui's guide has, and what is none of Maui's."""

from __future__ import annotations

import pytest
from imports import broken, made, said

POLICY = "FSPOLICY DEDICATEDPS\n"


@pytest.mark.parametrize(
    ("weight", "kind"),
    [
        ("FSUSERWEIGHT", "USER"), ("UFSWEIGHT", "USER"), ("FSGROUPWEIGHT", "GROUP"), ("GFSWEIGHT", "GROUP"),
        ("FSACCOUNTWEIGHT", "ACCOUNT"), ("AFSWEIGHT", "ACCOUNT"), ("ufsweight", "USER"),
    ],
)  # fmt: skip
def test_the_weights_of_fair_share_have_two_names(weight: str, kind: str) -> None:
    found = made("maui", cfg=f"{POLICY}FSWEIGHT 10\n{weight} 3\n{kind}CFG[ann] FSTARGET=40")
    users = {"everybody": {"users": {"ann": {"target": 40, "default": True}}}}
    assert found.plugins["windows"]["accounts"] == (users if kind == "USER" else {"ann": {"target": 40}})
    assert found.plugins["multifactor"]["weights"]["fairshare"] == 200 * 10 * 3
    assert not any("FSTARGET" in text or "WEIGHT" in text for text in said(found))


def test_a_target_for_everybody_alone_is_said_to_be_left_out() -> None:
    cfg = f"{POLICY}FSWEIGHT 100\nFSUSERWEIGHT 10\nUSERCFG[DEFAULT] FSTARGET=25.0\nCLASSCFG[q] PRIORITY=0"
    found = made("maui", cfg=cfg)
    assert "windows" not in found.plugins
    assert [text for text in said(found) if text.startswith("cfg:4")] == [
        "cfg:4: USERCFG[DEFAULT] FSTARGET=25.0 is not carried over: no name has a target, so fair share is "
        "left out altogether (FSPOLICY, FSWEIGHT, FSUSERWEIGHT)"
    ]
    found = made("maui", cfg=f"{cfg}\nUSERCFG[ann] FSTARGET=40")
    assert "windows" in found.plugins
    assert any("a name without a target gets its part of the rest" in text for text in said(found))


def test_a_class_whose_name_is_refused_is_in_no_rule() -> None:
    found = made(
        "maui", cfg="CLASSCFG[a b] MAXPROC=10 FLAGS=PREEMPTOR\nCLASSCFG[q] MAXPROC=9 FLAGS=PREEMPTEE"
    )
    assert found.options["queues"] == ["q"]
    assert found.plugins["limits"]["of"] == {"pool": {"q": {"processors": 9}}}
    assert "preemption" not in found.plugins


@pytest.mark.parametrize("system", ["maui", "pbs", "slurm"])
@pytest.mark.parametrize("text", ["mode: drive\n", "plugins:\n  - easy\n", "hello\n", "%!PS\n", "<xml/>"])
def test_another_file_is_none_of_these(system: str, text: str) -> None:
    found = made(system, other=text)
    assert broken(found) and broken(found)[0].startswith("other:1: expected ")


def test_limits_of_everybody_hold_for_a_name_that_has_others() -> None:
    found = made(
        "maui", cfg="USERCFG[DEFAULT] MAXJOB=4 MAXPROC=64\nUSERCFG[ann] MAXJOB=9\nCLASSCFG[q] MAXJOB=50"
    )
    assert found.plugins["limits"]["of"]["user"] == {"*": {"jobs": 4, "processors": 64}, "ann": {"jobs": 9}}
    assert not broken(found)
