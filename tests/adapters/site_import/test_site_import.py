"""`headway import`: a site's files become a configuration that is accepted, runs, and says what it lacks."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st
from imports import FILES, made, said

from headway.cli import cli
from headway.config import parse_config
from headway.plugins import Catalogue, Plugins
from headway_adapters.site_import.command import imported
from headway_adapters.site_import.found import Imported, read_lines

GIVEN = {
    "slurm": ("slurm.conf", "slurm.dump", "qos.txt"),
    "maui": ("maui.cfg",),
    "pbs": ("sched_config", "resource_group", "holidays", "qmgr.txt"),
}


def of(system: str, *names: str) -> Imported:
    """What is made of these of the example files."""
    return imported(system, [read_lines(FILES / name) for name in names or GIVEN[system]], Catalogue())


# ---------------------------------------------------------------------- all of them


@pytest.mark.parametrize("system", GIVEN)
def test_what_is_written_is_accepted_and_runs(system: str, tmp_path: Path) -> None:
    out, runner = tmp_path / "site.yaml", CliRunner()
    words = ["import", system, *(str(FILES / name) for name in GIVEN[system]), "--out", str(out)]
    ran = runner.invoke(cli, words)
    assert ran.exit_code == 0, ran.output
    config = parse_config(out.read_text(), str(out))
    Plugins.load(config.plugin_configs(), Catalogue(), None)
    assert config.mode.value == "monitor"
    trace = tmp_path / "log.swf"
    rows = (f"{n} {n} -1 50 4 -1 -1 4 60 -1 1 {n % 3 + 1} 1 1 1 1 -1 -1" for n in range(1, 16))
    trace.write_text("; MaxProcs: 16\n" + "\n".join(rows) + "\n")
    for policy in ([], ["--policy", f"like-{system}"]):
        ran = runner.invoke(cli, ["dry-run", "-c", str(out), "--trace", str(trace), *policy])
        assert ran.exit_code == 0, ran.output


def test_what_is_there_is_not_written_over(tmp_path: Path) -> None:
    out = tmp_path / "site.yaml"
    out.write_text("mine")
    words = ["import", "maui", str(FILES / "maui.cfg"), "--out", str(out)]
    ran = CliRunner().invoke(cli, words)
    assert ran.exit_code != 0 and out.read_text() == "mine"
    assert "the file exists already (--force overwrites it)" in str(ran.exception)
    assert CliRunner().invoke(cli, [*words, "--force"]).exit_code == 0
    assert "easy" in out.read_text()


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    ran = CliRunner().invoke(cli, ["import", "slurm", str(tmp_path / "none.conf")])
    assert f"{tmp_path}/none.conf: expected a file that can be read: No such file" in str(ran.exception)


def test_a_line_that_cannot_be_read_is_named_and_the_rest_is_written(tmp_path: Path) -> None:
    file = tmp_path / "maui.cfg"
    file.write_bytes(
        b"QUEUETIMEWEIGHT ten\nUSERCFG MAXJOB=3\nUSERCFG[ann] "
        b"MAXJOB=x\n\xff\xfe\n\x1b[31mBAD\nUSERCFG[bob] MAXJOB=4\n"
    )
    ran = CliRunner().invoke(cli, ["import", "maui", str(file)])
    assert ran.exit_code == 1
    for place in (
        "maui.cfg:1: QUEUETIMEWEIGHT: expected a number, found 'ten'",
        "maui.cfg:2: USERCFG: expected USERCFG[NAME] ATTRIBUTE=VALUE",
        "maui.cfg:3: USERCFG[ann] MAXJOB: expected a number from 0 on, found 'x'",
        "maui.cfg:4: expected text in UTF-8, found other bytes",
        "maui.cfg:5: expected PARAMETER VALUE",
    ):
        assert place in ran.output
    assert "\x1b" not in ran.output
    assert "bob:" in ran.output


_WORDS = st.sampled_from(
    [
        "PriorityWeightAge=5",
        "NodeName=n[1-",
        "NodeName=n[1-3] CPUs=x",
        "PartitionName=a Nodes=ALL",
        "User - 'x'",
        "Parent - 'b'",
        "Account - 'b':Fairshare=-3",
        "Account - 'a':Fairshare=9",
        "FSTARGET",
        "USERCFG[a] FSTARGET=200",
        "QOSCFG[x] FLAGS=PREEMPTOR PRIORITY=5",
        "FSPOLICY DEDICATEDPS",
        "FSUSERWEIGHT 1",
        "fair_share: true",
        "a 1 b 5",
        "b 2 a 5",
        "c 3 root 7",
        "YEAR 2026",
        "Name|Priority|Preempt",
        "x|5|x",
        "Account|User|Share",
        "a|b|parent",
        'set queue x max_run = "[u:a=1]"',
        "preemptive_sched: maybe",
        "SchedulerParameters=bf_window=0,bf_x",
        "PreemptType=preempt/qos",
        "Key = Value",
    ]
)


@pytest.mark.parametrize("system", GIVEN)
@settings(max_examples=15)
@given(lines=st.lists(_WORDS | st.text(max_size=30).map(lambda text: text.replace("\n", " ")), max_size=12))
def test_whatever_the_files_say_a_configuration_is_made(system: str, lines: list[str]) -> None:
    found = made(system, f="\n".join(lines))
    config = parse_config(found.text(system))
    Plugins.load(config.plugin_configs(), Catalogue(), None)


# ---------------------------------------------------------------------- Slurm


def test_slurms_policy() -> None:
    found = of("slurm")
    assert found.options == {"partitions": ["batch", "gpu", "debug"]}
    fair = found.plugins["fair-tree"]
    assert fair["accounts"]["physics"] == {
        "shares": 60,
        "accounts": {
            "theory": {
                "shares": 10, "priority": 7,
                "users": {
                    "bob": {"shares": 2, "default": True}, "ann": {"shares": "parent", "default": True},
                },
            },
            "lab": {"shares": 30, "users": {"carl": {"default": True}}},
        },
    }  # fmt: skip
    assert (fair["half_life"], fair["reset"], fair["period"]) == (14 * 86400, "quarterly", 600)
    assert fair["billing"] == {"processors": 1, "memory": 0.25}
    assert fair["qos"] == {"urgent": 2, "standby": 0}
    multi = found.plugins["multifactor"]
    assert multi["weights"] == {
        "age": 1000, "association": 50, "fairshare": 20000, "size": 500, "pool": 1000, "qos": 5000,
        "resource:processors": 100, "resource:memory": 50, "resource:gpu": 3000,
    }  # fmt: skip
    assert (multi["max_age"], multi["size"]) == (7 * 86400, "time")
    assert multi["pools"] == {"batch": 100, "gpu": 200, "debug": 1000}
    assert multi["qos"] == {"normal": 100, "urgent": 1000, "standby": 0}
    assert found.plugins["preemption"] == {
        "rules": [
            {"who": {"qos": ["urgent"]}, "whom": {"qos": ["standby"]}, "how": "cancel", "exempt": 1800}
        ],
        "victims": "youngest",
    }
    assert found.plugins["conservative"] == {
        "queue_depth": 1000, "queue_depth_per_user": 30, "window": 3 * 86400, "resolution": 300,
    }  # fmt: skip
    assert found.emulation["licences"] == {"matlab": 40, "fluent": 8}
    assert [(kind["count"], kind["processors"]) for kind in found.emulation["nodes"]] == [(96, 64), (8, 64)]
    assert found.emulation["nodes"][1]["gres"] == {"gpu": 4}


def test_slurms_limits_are_inherited_by_users_as_slurm_does_it() -> None:
    limits = of("slurm").plugins["limits"]["of"]
    assert limits["association"] == {
        "chemistry:dora": {"largest": {"processors": 512}},
        "theory:bob": {"jobs": 20},
        "theory:ann": {"jobs": 4},
        "lab:carl": {"largest": {"walltime": 86400}},
    }
    assert limits["account"]["physics"] == {"processors": 2048, "resources": {"gpu": 16}}
    assert limits["account"]["chemistry"] == {"budget": 6e6, "wall_minutes": 9000.0}
    assert limits["pool"]["debug"] == {"largest": {"walltime": 1800}}


def test_what_of_slurms_policy_is_not_carried_over() -> None:
    assert said(of("slurm")) == [
        "slurm.conf:12: SchedulerParameters=bf_min_prio_reserve=500 has no counterpart",
        "slurm.conf:16: TopologyPlugin=topology/tree is not carried over: placement does not "
        "follow the topology",
        "slurm.conf:18: OverTimeLimit=5 is not carried over: jobs are expected to end at their limits",
        "slurm.conf:26: PriorityFlags=MAX_TRES has no counterpart",
        "slurm.conf:45: Weight=50: nodes are not chosen by weight",
        "slurm.conf:47: TRESBillingWeights: the weights of batch hold for all partitions, also for gpu, "
        "debug, which Slurm bills by processors",
        "slurm.conf:49: QOS=part_debug: the limits of a partition's QOS are not carried over",
        "slurm.conf:49: partition debug overlaps with batch (4 nodes in common): a dry run has each node "
        "once, all in the pool batch",
        "slurm.dump:17: MaxSubmitJobs=100 is not carried over: Slurm itself refuses such jobs at submission",
        "qos.txt:4: MaxSubmitJobsPerUser=50 is not carried over: Slurm itself refuses such jobs at "
        "submission",
        "qos.txt:4: QOS standby: gracetime=00:02:00 is not carried over: headway gives no time to end after "
        "a signal",
        "qos.txt:4: QOS standby: flags=NoReserve is not carried over",
    ]


def test_what_a_running_slurm_22_05_says() -> None:
    """Its own `scontrol show config`, `sacctmgr dump`, `show assoc tree` and `show qos`."""
    dumped = made(
        "slurm",
        conf="PriorityWeightFairshare=10\nAccountingStorageEnforce=limits\nPartitionName=batch",
        **{name: (FILES / name).read_text() for name in ("running.dump", "running-qos.txt")},
    )
    assert said(dumped) == []
    tree = made(
        "slurm",
        conf="PriorityWeightFairshare=10\nAccountingStorageEnforce=limits\nPartitionName=batch",
        **{name: (FILES / name).read_text() for name in ("running-assoc-tree.txt", "running-qos.txt")},
    )
    assert said(tree) == []

    def shares(accounts: dict) -> dict:
        return {
            name: (about.get("shares"), sorted(about.get("users", {})), shares(about.get("accounts", {})))
            for name, about in accounts.items()
        }

    ours = [one.plugins["fair-tree"]["accounts"] for one in (dumped, tree)]
    assert shares(ours[0]) == shares(ours[1])
    assert sorted(ours[0]["physics"]["accounts"]) == ["lab", "theory"]
    assert dumped.plugins["limits"] == tree.plugins["limits"] | {"accounts": ours[0]}
    config = of("slurm", "running-config.txt")
    assert "multifactor" not in config.plugins, "PriorityType=priority/basic"
    assert not any(remark.broken for remark in config.remarks)


def test_partitions_take_each_others_places_by_tier() -> None:
    text = (
        "PreemptType=preempt/partition_prio\nPreemptMode=REQUEUE\n"
        "PartitionName=low PriorityTier=1 PreemptMode=CANCEL\n"
        "PartitionName=mid PriorityTier=2 PreemptMode=SUSPEND,GANG\n"
        "PartitionName=high PriorityTier=3\nPartitionName=stays PriorityTier=1 PreemptMode=OFF"
    )
    rules = made("slurm", conf=text).plugins["preemption"]["rules"]
    assert [(rule["who"]["pool"], rule["whom"]["pool"], rule["how"]) for rule in rules] == [
        (["mid"], ["low"], "cancel"),
        (["high"], ["low"], "cancel"),
        (["high"], ["mid"], "suspend"),
    ]


def test_limits_that_slurm_does_not_enforce_are_left_out() -> None:
    found = made("slurm", conf="ClusterName=c\nPartitionName=a", d="Cluster - 'c'\nAccount - 'x':GrpJobs=3")
    assert "limits" not in found.plugins
    assert said(found) == [
        "conf:1: Slurm does not enforce limits of associations and QOS "
        "(AccountingStorageEnforce), so they are "
        "left out"
    ]


@pytest.mark.parametrize(
    ("dump", "why"),
    [
        ("Account - 'x':Fairshare=-5", "d:2: Share: expected a number from 0 on, found '-5'"),
        ("Parent - 'y'\nAccount - 'x':Fairshare=5", "d:3: account 'x': no account is called 'y'"),
        ("Account - 'x'\nAccount - 'x'", "d:3: the account 'x' is there already, in d:2"),
        ("Parent - 'y'\nAccount - 'x'\nParent - 'x'\nAccount - 'y'", "is above itself; it is put at the top"),
        ("nonsense", "d:2: expected \"Cluster - 'NAME'\""),
    ],
)
def test_a_broken_dump(dump: str, why: str) -> None:
    found = made("slurm", conf="PriorityWeightFairshare=1\nPartitionName=a", d=f"Cluster - 'c'\n{dump}")
    assert any(why in line for line in said(found)), said(found)
    assert "fair-tree" in found.plugins


# ---------------------------------------------------------------------- Maui


def test_mauis_policy() -> None:
    found = of("maui")
    assert found.plugins["windows"] == {
        "interval": 86400, "depth": 7, "decay": 0.8,
        "accounts": {
            "physics": {"target": 50, "priority": 100},
            "chem": {"target": 30, "bound": "ceiling"},
            "guests": {"target": 5, "bound": "cap"},
        },
    }  # fmt: skip
    multi = found.plugins["multifactor"]
    # 2 points a minute; 200 points a percent; the largest priority of a class, of a QOS and of a group.
    assert multi["weights"] == {
        "age": 2 * 144000, "bypass": 5 * 1000, "fairshare": 100 * 2 * 200, "pool": 10 * 1000, "qos": 10 * 500,
        "association": 10 * 100,
    }  # fmt: skip
    assert multi["max_age"] == 100 * 86400
    limits = found.plugins["limits"]["of"]
    assert limits["user"] == {"*": {"jobs": 30, "processors": 256}, "alice": {"jobs": 50}}
    assert limits["group"] == {"physics": {"processor_minutes": 864000000 / 60}}
    assert limits["pool"] == {"batch": {"largest": {"walltime": 3 * 86400}}}
    assert limits["user+pool"] == {"*+short": {"jobs": 4}}
    assert found.plugins["preemption"]["rules"] == [
        {"who": {"qos": ["hi"]}, "whom": {"qos": ["low"]}, "how": "requeue"}
    ]
    assert found.plugins["easy"] == {"bookings": 4, "queue_depth": 300}
    assert "best-fit" in found.plugins
    assert found.options == {"queues": ["batch", "short"], "flavour": "torque"}


def test_what_of_mauis_policy_is_not_carried_over() -> None:
    lines = said(of("maui"))
    for part in (
        "maui.cfg:20: PROCWEIGHT", "maui.cfg:31: USERCFG[DEFAULT] MAXJOB=20,30: only the hard limit",
        "maui.cfg:37: PREEMPTEE of pool short for qos hi", "maui.cfg:38: QOSCFG[hi] XFTARGET=100",
        "maui.cfg:39: QOSCFG[low] PRIORITY=-1000", "maui.cfg:51: DEFERTIME",
    ):  # fmt: skip
        assert any(line.startswith(part) for line in lines), (part, lines)


def test_a_waiting_job_gets_ahead_by_mauis_points() -> None:
    """A minute of waiting is worth as much as Maui says, beside a percent of fair share."""
    found = made(
        "maui", cfg="QUEUETIMEWEIGHT 3\nFSPOLICY DEDICATEDPS\nFSUSERWEIGHT 7\nUSERCFG[ann] FSTARGET=40"
    )
    weights, max_age = (found.plugins["multifactor"][key] for key in ("weights", "max_age"))
    assert weights["age"] / (max_age / 60) == pytest.approx(3)
    assert weights["fairshare"] / 200 == pytest.approx(7)
    assert found.plugins["windows"]["accounts"] == {
        "everybody": {"users": {"ann": {"target": 40, "default": True}}}
    }


# ---------------------------------------------------------------------- PBS


def test_pbs_policy() -> None:
    found = of("pbs")
    fair = found.plugins["fair-tree"]
    assert fair["accounts"] == {
        "root": {"users": {"ann": {"shares": 5, "default": True}}},
        "physics": {
            "shares": 60,
            "accounts": {
                "theory": {
                    "shares": 10,
                    "users": {
                        "bob": {"shares": 10, "default": True},
                        "carl": {"shares": 30, "default": True},
                    },
                }
            },
        },
        "chem": {"shares": 30, "users": {"dora": {"shares": 10, "default": True}}},
    }
    # A quarter after 48 hours is a half after 24.
    assert fair["half_life"] == pytest.approx(86400)
    assert found.pools == {"workq": {"tier": 50}, "express": {"tier": 200}}
    limits = found.plugins["limits"]["of"]
    assert limits["all"] == {"*": {"jobs": 500}}
    assert limits["user"] == {"*": {"jobs": 40}, "carl": {"jobs": 80}}
    assert limits["group"] == {"guests": {"processors": 128}}
    assert limits["user+pool"] == {"*+express": {"jobs": 2}}
    assert limits["pool"] == {"workq": {"largest": {"walltime": 3 * 86400, "processors": 512}}}
    assert found.plugins["preemption"]["rules"] == [
        {"who": {"pool": ["express"]}, "whom": {"pool": ["workq"]}, "how": "requeue"}
    ]
    assert found.plugins["easy"] == {"bookings": 3}
    assert found.options == {"queues": ["workq", "express"]}


def test_what_of_pbs_policy_is_not_carried_over() -> None:
    lines = said(of("pbs"))
    for part in (
        "sched_config:17: unknown_shares", "sched_config:24: preempt_prio: fairshare",
        "sched_config:25: preempt_order SCR: suspension is", "qmgr.txt:27: max_run_res_soft.ncpus",
        "qmgr.txt:28: job_sort_formula",
    ):  # fmt: skip
        assert any(line.startswith(part) for line in lines), (part, lines)


def test_the_configuration_that_openpbs_installs() -> None:
    text = (
        "round_robin: False\tall\nby_queue: True\t\tprime\nby_queue: True\t\tnon_prime\n"
        "strict_ordering: false\tALL\nbackfill_prime:\tfalse\tALL\nprime_exempt_anytime_queues:\tfalse\n"
        'node_sort_key: "sort_priority HIGH"\tALL\nfair_share: false\tALL\npreemptive_sched: true\tALL\n'
    )
    found = made("pbs", sched_config=text)
    assert list(found.plugins) == ["greedy", "first-fit"]
    assert not any(remark.broken for remark in found.remarks)


# ---------------------------------------------------------------------- names and numbers that are none


@pytest.mark.parametrize("name", ["a|b", " a", "-", "a\\'s"])
def test_an_account_of_an_odd_name_is_written_under_it(name: str) -> None:
    dump = f"Cluster - 'c':Fairshare=1\nParent - 'root'\nAccount - '{name}':Fairshare=3\n"
    found = made("slurm", conf="PriorityWeightFairshare=1", dump=f"{dump}Parent - '{name}'\nUser - 'ann'\n")
    plain = name.replace("|", " ").strip()
    assert found.plugins["fair-tree"]["accounts"] == {plain: {"shares": 3.0, "users": {"ann": {}}}}


def test_a_row_without_a_name_costs_nobody_else_their_shares() -> None:
    dump = "Cluster - 'c'\nParent - 'root'\nAccount - '':GrpJobs=3\nAccount - 'a':Fairshare=3:GrpJobs=4\n"
    conf = "PriorityWeightFairshare=1\nAccountingStorageEnforce=limits"
    found = made("slurm", conf=conf, dump=dump)
    assert found.plugins["fair-tree"]["accounts"] == {"a": {"shares": 3.0}}
    assert found.plugins["limits"]["of"] == {"account": {"a": {"jobs": 4}}}
    assert "dump:3: expected a name, found \"Account - '':GrpJobs=3\"" in said(found)


def test_numbers_without_end_are_remarked_and_cost_no_plugin() -> None:
    conf = (
        "PriorityWeightFairshare=1\nPriorityWeightQOS=1\nPriorityWeightPartition=1\n"
        "PartitionName=p PriorityJobFactor="
    )
    dump = "Cluster - 'c'\nParent - 'root'\nAccount - 'a':Fairshare=UNLIMITED:Priority=INFINITE\n"
    found = made("slurm", conf=f"{conf}UNLIMITED", dump=dump, qos="Name|Priority\nhigh|UNLIMITED")
    assert found.plugins["fair-tree"]["accounts"] == {"a": {}}
    assert found.plugins["multifactor"]["pools"] == {"p": 0.0}
    assert found.plugins["multifactor"]["qos"] == {"high": 0.0}
    remarks = [text.partition(": ")[0] for text in said(found) if "expected a number from 0 on" in text]
    assert remarks == ["conf:4", "dump:3", "dump:3", "qos:2"]


def test_times_and_weights_beyond_what_a_plugin_takes_cost_no_plugin() -> None:
    conf = "PriorityWeightAge=5\nPriorityWeightFairshare=1\n"
    keys = ("PriorityMaxAge", "PriorityCalcPeriod", "PriorityDecayHalfLife")
    found = made("slurm", conf=conf + "\n".join(f"{key}=9999999999999" for key in keys))
    assert found.plugins["multifactor"] == {"weights": {"age": 5.0, "fairshare": 1.0}}
    assert found.plugins["fair-tree"] == {}
    for at, key in enumerate(keys, 3):
        assert any(text.startswith(f"conf:{at}: {key}: expected") for text in said(found))
    cfg = (
        "SERVICEWEIGHT 1000\nQUEUETIMEWEIGHT 100000\nCREDWEIGHT 1000\nCLASSWEIGHT 1000\n"
        "CLASSCFG[a] PRIORITY=144000"
    )
    found = made("maui", cfg=cfg)
    weights = found.plugins["multifactor"]["weights"]
    assert weights == pytest.approx({"age": 1e12, "pool": 1e10})
    assert "cfg:1: all weights are divided by 14.4, so that none is above 1e+12" in said(found)
    # 897034309386 / (897034309386 * 385125685167 / 1e12) times the other is more than 1e12 by rounding.
    found = made("maui", cfg="SERVICEWEIGHT 897034309386\nQUEUETIMEWEIGHT 385125685167\n")
    assert found.plugins["multifactor"]["weights"] == {"age": 1e12}


def test_of_two_lines_of_one_qos_the_first_holds() -> None:
    table = "Name|Priority|Preempt\nhigh|9|low\nlow|1|\nhigh|5|\n"
    conf = "PriorityWeightQOS=1\nPreemptType=preempt/qos\nPreemptMode=CANCEL"
    found = made("slurm", conf=conf, qos=table)
    assert found.plugins["multifactor"]["qos"] == {"high": 9.0, "low": 1.0}
    assert len(found.plugins["preemption"]["rules"]) == 1
    assert "qos:4: QOS high is there already, in qos:2" in said(found)


def test_accounts_that_are_too_deep_are_put_at_the_top() -> None:
    lines = ["Cluster - 'c'", "Parent - 'root'", "Account - 'a0'"]
    for at in range(1, 250):
        lines += [f"Parent - 'a{at - 1}'", f"Account - 'a{at}'"]
    lines += ["Parent - 'a249'", "User - 'ann'"]
    found = made("slurm", conf="PriorityWeightFairshare=1", dump="\n".join(lines))
    assert list(found.plugins["fair-tree"]["accounts"]) == ["a0", "a100", "a200"]
    tops = [text for text in said(found) if "accounts above it" in text]
    assert tops == [
        f"dump:{2 * at + 3}: account 'a{at}' has more than 99 accounts above it; it is put at the top"
        for at in (100, 200)
    ]


def test_of_two_lines_of_one_account_the_first_holds_with_all_its_users() -> None:
    dump = (
        "Cluster - 'c'\nParent - 'root'\nAccount - 'a':Fairshare=2\nAccount - 'b':Fairshare=4\n"
        "Parent - 'a'\nUser - 'ann':Fairshare=5\nUser - 'ann':Fairshare=6\n"
        "Parent - 'b'\nAccount - 'a':Fairshare=7\nParent - 'late'\nUser - 'bob'\n"
        "Parent - 'root'\nAccount - 'late':Fairshare=3\n"
    )
    found = made("slurm", conf="PriorityWeightFairshare=1", dump=dump)
    assert found.plugins["fair-tree"]["accounts"] == {
        "a": {"shares": 2.0, "users": {"ann": {"shares": 5.0}}},
        "b": {"shares": 4.0},
        "late": {"shares": 3.0, "users": {"bob": {}}},
    }
    remarks = said(found)
    assert "dump:7: the user 'ann' in account 'a' is there already, in dump:6" in remarks
    assert "dump:9: the account 'a' is there already, in dump:3" in remarks


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("NodeName=n1 CPUs=\N{SUPERSCRIPT TWO}", "cpus: expected a number, found '\N{SUPERSCRIPT TWO}'"),
        (f"Licenses=a:{'9' * 5000}", "Licenses: expected NAME:COUNT"),
        (f"PriorityMaxAge={'9' * 400}", "PriorityMaxAge: expected minutes or D-HH:MM:SS"),
        ("PriorityMaxAge=forever", "PriorityMaxAge: expected minutes or D-HH:MM:SS, found 'forever'"),
        ("PriorityCalcPeriod=x", "PriorityCalcPeriod: expected minutes"),
        ("PriorityFavorSmall=perhaps", "PriorityFavorSmall: expected YES or NO"),
        ("PriorityWeightTRES=CPU=x", "PriorityWeightTRES: expected items such as CPU=1000, found 'CPU=x'"),
        ("PartitionName=p MaxTime=soon", "MaxTime: expected minutes or D-HH:MM:SS, found 'soon'"),
        ("PartitionName=p MaxTime=1:2:3:4", "MaxTime: expected minutes or D-HH:MM:SS, found '1:2:3:4'"),
        ("PartitionName=p MaxNodes=few", "MaxNodes: expected a number, found 'few'"),
        ("PartitionName=p PriorityJobFactor=-1", "PriorityJobFactor: expected a number from 0 on"),
        ("SchedulerType=sched/other", "SchedulerType=sched/other: expected sched/backfill or sched/builtin"),
        ("INCLUDE\tmore.conf", "more.conf is included; give that file as well (more.conf: expected a file "),
    ],
)
def test_what_slurms_configuration_says_in_vain_is_remarked(line: str, why: str) -> None:
    remarks = [text for text in said(made("slurm", conf=line)) if "no partition was found" not in text]
    assert [text.removeprefix("conf:1: ")[: len(why)] for text in remarks] == [why]


def test_walls_that_are_no_time_and_shares_below_nothing_are_remarked() -> None:
    dump = "Cluster - 'c'\nParent - 'root'\nAccount - 'a':Fairshare=-1:GrpWall=x:MaxWallDurationPerJob=y\n"
    found = made("slurm", conf="PriorityWeightFairshare=1", dump=dump)
    assert found.plugins["fair-tree"]["accounts"] == {"a": {}}
    assert [text for text in said(found) if text.startswith("dump:3")] == [
        "dump:3: Share: expected a number from 0 on, found '-1'",
        "dump:3: GrpWall: expected minutes or D-HH:MM:SS, found 'x'",
        "dump:3: MaxWall: expected minutes or D-HH:MM:SS, found 'y'",
    ]


def test_of_slurms_exempt_time_minutes_are_enough_and_a_qos_own_is_remarked() -> None:
    conf = "PreemptType=preempt/qos\nPreemptMode=REQUEUE\nPreemptExemptTime=30"
    table = "Name|Priority|Preempt|PreemptExemptTime\nhigh|9|low,gone|\nlow|1||00:10:00"
    found = made("slurm", conf=conf, qos=table)
    assert found.plugins["preemption"]["rules"] == [
        {"who": {"qos": ["high"]}, "whom": {"qos": ["low"]}, "how": "requeue", "exempt": 1800.0}
    ]
    remarks = said(found)
    assert "qos:2: QOS high: Preempt=gone: there is no such QOS" in remarks
    assert any(text.startswith("qos:3: QOS low: preemptexempttime=00:10:00 is not") for text in remarks)


@pytest.mark.parametrize(
    ("system", "text", "queues", "line"),
    [
        ("maui", "CLASSCFG[a b] MAXPROC=10\nCLASSCFG[q] MAXPROC=9", ["q"], 1),
        ("pbs", "create queue q\ncreate queue a b", ["q"], 2),
    ],
)
def test_a_queue_that_the_adapter_would_refuse_is_remarked(
    system: str, text: str, queues: list[str], line: int
) -> None:
    found = made(system, file=text)
    assert found.options["queues"] == queues
    why = "expected a name of a queue (letters, digits, '_', '-', '.'), found 'a b'"
    assert f"file:{line}: {why}" in said(found)


def test_what_maui_and_pbs_do_not_know_is_remarked() -> None:
    remarks = said(made("maui", cfg="RESERVATIONPOLICY some"))
    assert any(text.startswith("cfg:1: RESERVATIONPOLICY SOME: expected CURRENTHIGHEST") for text in remarks)
    remarks = said(made("pbs", config="preemptive_sched: true ALL\npreempt_order: XYZ"))
    assert any(text.startswith("config:2: preempt_order XYZ: expected R or D") for text in remarks)


def test_a_character_that_ends_a_line_elsewhere_hides_nothing() -> None:
    dump = "Cluster - 'c'\nParent - 'root'\nAccount - 'a\x0bb':Fairshare=3\nAccount - 'd'\n"
    found = made("slurm", conf="PriorityWeightFairshare=1", dump=dump)
    assert found.plugins["fair-tree"]["accounts"] == {"d": {}}
    assert "dump:3: expected one line, found a character in it that ends lines elsewhere" in said(found)
