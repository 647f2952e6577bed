"""Accounts, QOS, weights and limits, from what Slurm's commands printed."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from pretended import events, result
from pretended_slurm import FIXTURES, PretendedSlurm
from structlog.testing import capture_logs

from headway import events as ev
from headway.model import Association
from headway_adapters.polling.client import Unanswered
from headway_adapters.slurm import SlurmAdapter, SlurmOptions
from headway_adapters.slurm.reader import config, read_policy
from headway_adapters.slurm.reader.spent import read_spent
from headway_adapters.transport import Result
from headway_plugins.priority.minutes import RESOURCES

KINDS = ("config", "partition", "assoc", "user", "qos", "sshare")
SAID = {kind: (FIXTURES / "policy" / f"{kind}.txt").read_text() for kind in KINDS}


def read(notes=None, **changed):
    said = {**SAID, **changed}
    return read_policy(
        config(said["config"]), *(said[kind] for kind in KINDS[1:]), set() if notes is None else notes
    )


def test_accounts_users_shares_and_usage():
    notes = set()
    policy = read(notes)
    found = {(one.account, one.user): one for one in policy.associations}
    assert found["physics", ""] == Association("physics", shares=60)
    assert found["theory", ""] == Association("theory", parent="physics", shares=10, priority=7)
    # Fairshare=parent, of an account and of a user.
    assert found["lab", ""] == Association("lab", parent="physics", shares=None)
    assert found["theory", "bin"].shares is None
    assert found["chemistry", "daemon"] == Association("chemistry", "daemon", shares=5, usage=24)
    assert found["theory", "daemon"].default and not found["chemistry", "daemon"].default
    assert ("root", "") not in found and ("root", "root") in found
    assert notes == set()


def test_weights_times_qos_and_partitions():
    policy = read()
    assert policy.resources == RESOURCES
    assert policy.weights == {
        "age": 1000, "association": 300, "fairshare": 10000, "size": 500, "pool": 100, "qos": 2000,
    }  # fmt: skip
    assert (policy.max_age, policy.period, policy.half_life) == (600, 60, 0)
    assert policy.qos == {"normal": 0, "high": 100, "low": 10}
    assert policy.qos_billing == {"normal": 1, "high": 1, "low": 0.5}
    assert policy.qos_safe == ()
    flagged = SAID["qos"].replace("|\n", "|DenyOnLimit,UsageFactorSafe\n", 1)
    assert read(qos=flagged).qos_safe == (SAID["qos"].partition("|")[0],)
    assert policy.pools == {"batch": 1}
    assert not policy.favour_small and not policy.size_over_time


def test_other_settings_of_priorities():
    said = SAID["config"].replace("PriorityFavorSmall      = No", "PriorityFavorSmall = Yes")
    said = said.replace("PriorityWeightTRES      = (null)", "PriorityWeightTRES = CPU=10,Mem=5.5,GRES/gpu=7")
    said += "PriorityFlags = SMALL_RELATIVE_TO_TIME,MAX_TRES\nPriorityDecayHalfLife = 7-00:00:00\n"
    policy = read(config=said)
    assert policy.favour_small and policy.size_over_time and policy.half_life == 7 * 86400
    tres = {name: weight for name, weight in policy.weights.items() if name.startswith("resource:")}
    assert tres == {"resource:processors": 10, "resource:memory": 5.5, "resource:gpu": 7}


def test_a_slurm_without_multifactor_priorities_has_no_weights():
    assert read(config="PriorityType = priority/basic\n").weights == {}


def test_limits_in_the_words_of_the_plugin():
    limits = read().limits
    assert limits["account"] == {
        "physics": {"jobs": 20, "processors": 12, "memory": 4.0, "budget": 1000.0},
    }  # fmt: skip
    # What sacctmgr shows with a user is inherited from the accounts above.
    assert limits["association"]["theory:daemon"] == {"jobs": 5, "largest": {"walltime": 7200.0}}
    assert limits["association"]["theory:bin"] == {
        "jobs": 3, "largest": {"walltime": 7200.0, "processors": 4},
    }  # fmt: skip
    assert "chemistry:lp" not in limits["association"]
    assert limits["qos"] == {"high": {"processor_minutes": 5000.0, "largest": {"walltime": 86400.0}}}
    assert limits["user+qos"] == {"*+high": {"jobs": 2, "processors": 8, "memory": 4.0}}


def test_what_was_used_of_minutes_by_accounts_users_qos_and_all_together():
    """Theory's two jobs ran on two processors for 40 s, physics' one with QOS high on one for 30 s."""
    used = read_spent((FIXTURES / "policy" / "assoc_mgr.txt").read_text())
    assert used == {
        "all": {"*": {"budget": 3.0, "wall_minutes": 1.83}},
        "account": {
            "physics": {"budget": 3.0, "wall_minutes": 1.83},
            "theory": {"budget": 2.0, "wall_minutes": 1.33},
        },
        "association": {
            "physics:root": {"wall_minutes": 0.5}, "theory:bin": {"budget": 1.0, "wall_minutes": 0.67},
            "theory:daemon": {"budget": 1.0, "wall_minutes": 0.67},
        },
        "qos": {"normal": {"budget": 2.0, "wall_minutes": 1.33}, "high": {"wall_minutes": 0.5}},
    }  # fmt: skip


def test_odd_lines_of_what_was_used_are_passed_over():
    text = (
        "Association Records\nClusterName=c Account=x UserName=ann(7) Partition=debug P=0 GrpWall=5(3.00)\n"
        "ClusterName=c Account=x UserName= Partition= Priority=0 GrpWall=5(x)\nQOS=\nno associations\n"
        "QOS=odd(name)(3) UsageRaw=1 GrpWall=N(2.50)\n"
    )
    assert read_spent(text) == {"qos": {"odd(name)": {"wall_minutes": 2.5}}}


def test_what_has_no_counterpart_is_noted():
    notes = set()
    assoc = (
        "deep|uucp|debug||1|||||||||||\n"
        "deep|news|||1|||gres/gpu=2,energy=5||cpu=7,mem=9|60:00|4|||UNLIMITED|cpu=2\nnonsense\n"
        "deep|mail|||1||||||00:00:00|||||\n"
    )
    limits = read(notes, assoc=assoc).limits["association"]
    assert limits == {
        "deep:news": {
            "resources": {"gpu": 2.0}, "processor_minutes": 7.0, "jobs": 4, "wall_minutes": 60.0,
        },
        "deep:mail": {"wall_minutes": 0.0},
    }  # fmt: skip
    assert notes == {
        "the association of uucp in deep for partition debug is not carried over",
        "account deep, user news: GrpTRES: energy=5 is not carried over",
        "account deep, user news: GrpTRESRunMins: mem=9 is not carried over",
        "account deep, user news: MaxTRESPerNode=cpu=2 is not carried over",
    }


def telling(qos: str, stderr: str = "") -> Callable[[tuple[str, ...]], Result | None]:
    """Slurm's answers about its policy, those about QOS these."""

    def answer(argv: tuple[str, ...]) -> Result | None:
        kind = "sshare" if argv[0] == "sshare" else argv[argv.index("show") + 1] if "show" in argv else ""
        if kind == "qos":
            return result(argv, qos, stderr=stderr)
        return result(argv, SAID[kind]) if kind in SAID and kind != "partition" else None

    return answer


def test_a_policy_that_slurm_could_not_tell_to_its_end_changes_nothing():
    """Seen where slurmdbd was killed: status 0, and limits whose resources have no names left out."""
    slurm = PretendedSlurm()
    slurm.answer = telling(SAID["qos"])
    options = SlurmOptions(partitions=("batch",), poll_interval=0.05, accounting="no", policy_interval=0.05)
    with capture_logs() as logs, SlurmAdapter(options, transport=slurm) as one:
        one.tell_policy()
        one.describe()
        assert [type(event) for event in events(one)].count(ev.SitePolicyChanged) == 1
        lost = SAID["qos"].replace("cpu=5000", "")
        assert lost != SAID["qos"]
        slurm.answer = telling(lost, "sacctmgr: error: Sending PersistInit msg: Connection refused")
        assert not [event for event in events(one, 0.6) if isinstance(event, ev.SitePolicyChanged)]
        assert any("the site's policy stays as it was" in str(log) for log in logs)
        slurm.answer = telling(lost, "sacctmgr: error: a word of the site's own plugin")
        assert [event for event in events(one, 0.6) if isinstance(event, ev.SitePolicyChanged)]


def test_no_policy_that_slurm_could_not_tell_to_its_end_is_the_first():
    slurm = PretendedSlurm()
    lost = SAID["qos"].replace("cpu=5000", "")
    slurm.answer = telling(lost, "sacctmgr: error: Sending PersistInit msg: Connection refused")
    options = SlurmOptions(partitions=("batch",), poll_interval=0.05, accounting="no", policy_interval=300)
    with SlurmAdapter(options, transport=slurm) as one:
        one.tell_policy()
        with pytest.raises(Unanswered, match="Connection refused"):
            one.describe()
        slurm.answer = telling(SAID["qos"])
        one.describe()
        assert [type(event) for event in events(one)].count(ev.SitePolicyChanged) == 1
