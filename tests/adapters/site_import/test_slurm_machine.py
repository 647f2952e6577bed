"""`headway import slurm`: partitions and nodes are what slurmctld makes of the files."""

from __future__ import annotations

import pytest
from imports import broken, made, said

NODE = "NodeName=n1 CPUs=4\n"
MULTIFACTOR = "PriorityType=priority/multifactor\nPriorityWeightPartition=1000\n"


# ---------------------------------------------------------------------- partitions


@pytest.mark.parametrize(
    ("keys", "factor", "tier"),
    [
        ("Priority=100", 100, 100),
        # As a 22.05 shows it: Priority overrides both, wherever it stands.
        ("Priority=700 PriorityTier=3", 700, 700),
        ("PriorityJobFactor=5 Priority=70", 70, 70),
        ("PriorityJobFactor=5", 5, 1),
        ("PriorityTier=9", 1, 9),
        ("", 1, 1),
    ],
)
def test_priority_of_a_partition_is_its_factor_and_its_tier(keys: str, factor: int, tier: int) -> None:
    conf = f"{MULTIFACTOR}{NODE}PartitionName=other Nodes=n1 PriorityTier=4\nPartitionName=p Nodes=n1 {keys}"
    found = made("slurm", conf=conf)
    assert found.plugins["multifactor"]["pools"] == {"other": 1, "p": factor}
    assert any(f"(other: 4, p: {tier})" in line for line in said(found))


def test_priority_of_the_default_line_holds_for_all() -> None:
    conf = "PartitionName=DEFAULT Priority=5\nPartitionName=a PriorityJobFactor=9\nPartitionName=b Priority=8"
    assert made("slurm", conf=MULTIFACTOR + conf).plugins["multifactor"]["pools"] == {"a": 5, "b": 8}


def test_a_priority_that_is_none_costs_nothing_else() -> None:
    found = made("slurm", conf=f"{MULTIFACTOR}PartitionName=a Priority=high PriorityJobFactor=9")
    assert found.plugins["multifactor"]["pools"] == {"a": 9}
    assert broken(found) == ["conf:3: Priority: expected a number from 0 on, found 'high'"]


def test_tiers_are_remarked_whatever_is_weighed() -> None:
    for weights in ("", MULTIFACTOR):
        conf = f"{weights}{NODE}PartitionName=batch PriorityTier=1\nPartitionName=urgent PriorityTier=10"
        found = made("slurm", conf=conf)
        line = 2 + weights.count("\n")
        start = f"conf:{line}: PriorityTier (batch: 1, urgent: 10) counts on the cluster"
        assert [text for text in said(found) if text.startswith(start)], said(found)
        assert not broken(found)


SHOWN = """PartitionName=batch
   AllowGroups=ALL AllowAccounts=ALL AllowQos=ALL
   AllocNodes=ALL Default=YES QoS=N/A
   MaxNodes=UNLIMITED MaxTime=1-00:00:00 MinNodes=0 LLN=NO MaxCPUsPerNode=UNLIMITED
   Nodes=n[1-4]
   PriorityJobFactor=10 PriorityTier=1 RootOnly=NO ReqResv=NO OverSubscribe=NO
   State=UP TotalCPUs=16 TotalNodes=4

PartitionName=debug
   AllowGroups=ALL AllowAccounts=ALL AllowQos=ALL
   MaxNodes=UNLIMITED MaxTime=00:30:00 MinNodes=0 LLN=NO MaxCPUsPerNode=UNLIMITED
   Nodes=n[1-4]
   PriorityJobFactor=100 PriorityTier=1 RootOnly=NO ReqResv=NO OverSubscribe=NO
"""


@pytest.mark.parametrize("width", ["several lines", "one line"])
def test_what_scontrol_shows_of_partitions(width: str) -> None:
    shown = SHOWN if width == "several lines" else SHOWN.replace("\n   ", " ").replace("\n\n", "\n")
    found = made("slurm", conf=f"{MULTIFACTOR}PartitionName=batch MaxTime=5 PriorityJobFactor=3", shown=shown)
    assert said(found) == []
    assert found.options == {"partitions": ["batch", "debug"]}
    assert found.plugins["multifactor"]["pools"] == {"batch": 10, "debug": 100}
    assert found.plugins["limits"]["of"]["pool"] == {
        "batch": {"largest": {"walltime": 86400}}, "debug": {"largest": {"walltime": 1800}},
    }  # fmt: skip


#: As a 22.05 prints it.
SHOWN_NODES = (
    "NodeName=x1 Arch=x86_64 CoresPerSocket=1  CPUAlloc=0 CPUEfctv=5 CPUTot=6 CPULoad=N/A "
    "AvailableFeatures=fast,big ActiveFeatures=fast Gres=gpu:tesla:1,bandwidth:lustre:4G NodeAddr=x1 "
    "OS=Linux 5.10.0-8-amd64 #1 SMP Debian 5.10.46-4 (2021-08-03) RealMemory=1000 Sockets=6 Boards=1 "
    "CoreSpecCount=1 MemSpecLimit=100 State=IDLE ThreadsPerCore=1 Weight=1 Partitions=p Reason=to be seen "
    "[root@2026-01-01T00:00:00]"
)


def test_what_scontrol_shows_of_nodes() -> None:
    conf = "NodeName=x[1-3] CPUs=2\nPartitionName=p"
    found = made("slurm", conf=conf, shown=SHOWN_NODES)
    assert [kind["count"] for kind in found.emulation["nodes"]] == [1, 3]
    found = made("slurm", conf="NodeName=x1 CPUs=2\nPartitionName=p", shown=SHOWN_NODES)
    assert found.emulation["nodes"] == [
        {
            "count": 1, "processors": 5, "memory": 900 << 20, "gres": {"gpu": 1, "bandwidth": 4 << 30},
            "features": ["fast", "big"], "pool": "p",
        }
    ]  # fmt: skip
    assert said(found) == []


@pytest.mark.parametrize(
    ("key", "why"),
    [
        ("MinNodes=4", "smallest sizes"),
        ("State=DRAIN", "headway would start jobs there"),
        ("OverSubscribe=FORCE:4", "jobs do not share processors"),
        ("Shared=YES", "jobs do not share processors"),
        ("ExclusiveUser=YES", "users share nodes"),
        ("MaxMemPerCPU=2000", "limits per processor"),
        ("OverTimeLimit=10", "jobs are expected to end at their limits"),
        ("LLN=YES", "not chosen by load"),
        ("QOS=part", "limits of a partition's QOS"),
    ],
)
def test_what_of_a_partition_has_no_counterpart_is_named(key: str, why: str) -> None:
    (line,) = said(made("slurm", conf=f"PartitionName=p {key}"))
    assert line.startswith("conf:1: ") and why in line
    assert key.partition("=")[0] in line or key.startswith("Shared")


# ---------------------------------------------------------------------- nodes


def test_nodes_of_the_future_are_none_and_those_that_are_down_are_there() -> None:
    conf = (
        "NodeName=n[1-4] CPUs=4\nNodeName=f[1-100] CPUs=4 State=FUTURE\nNodeName=d[1-2] CPUs=4 State=DOWN\n"
    )
    found = made("slurm", conf=f"{conf}NodeName=c[1-3] CPUs=4 State=CLOUD\nPartitionName=p Nodes=ALL")
    assert found.emulation["nodes"] == [{"count": 9, "processors": 4, "pool": "p"}]
    assert said(found) == ["conf:3: State=DOWN: a dry run has these nodes"]


@pytest.mark.parametrize(
    ("node", "processors"),
    [
        ("Sockets=2 CoresPerSocket=8 ThreadsPerCore=2", 32),
        ("Boards=2 SocketsPerBoard=2 CoresPerSocket=4", 16),
        ("Procs=6 CoreSpecCount=1", 5),
        ("CPUs=32 ThreadsPerCore=2 CoreSpecCount=2", 28),
        ("CPUs=6 CpuSpecList=0,1", 4),
        ("CPUs=6 CpuSpecList=0-1,5", 3),
    ],
)
def test_processors_that_jobs_may_have(node: str, processors: int) -> None:
    """What slurmctld calls CPUEfctv."""
    (kind,) = made("slurm", conf=f"NodeName=n1 {node}\nPartitionName=p").emulation["nodes"]
    assert kind["processors"] == processors


@pytest.mark.parametrize(
    ("select", "managed"),
    [
        ("", True),
        ("SelectType=select/cons_tres\n", True),
        ("SelectType=select/cons_tres\nSelectTypeParameters=CR_Core\n", False),
        ("SelectTypeParameters=CR_CPU_Memory,CR_LLN\n", True),
        ("SelectType=select/linear\n", False),
        ("SelectType=select/linear\nSelectTypeParameters=CR_Memory\n", True),
    ],
)
def test_memory_is_counted_where_slurm_counts_it(select: str, managed: bool) -> None:
    conf = f"{select}NodeName=n1 CPUs=4 RealMemory=1000\nPartitionName=p"
    (kind,) = made("slurm", conf=conf).emulation["nodes"]
    assert kind.get("memory") == (1000 << 20 if managed else None)


@pytest.mark.parametrize(
    ("conf", "whole", "remarks"),
    [
        ("SelectType=select/linear\n{0}PartitionName=p Default=YES", True, 0),
        ("SelectType=select/cons_tres\n{0}PartitionName=p Default=YES", None, 0),
        ("{0}PartitionName=p Default=YES OverSubscribe=EXCLUSIVE", True, 0),
        ("{0}PartitionName=p Default=YES\nPartitionName=q OverSubscribe=EXCLUSIVE", None, 1),
        ("{0}PartitionName=q\nPartitionName=p Default=YES Shared=EXCLUSIVE", True, 0),
    ],
)
def test_whole_nodes_are_given_where_slurm_gives_them(conf: str, whole: bool | None, remarks: int) -> None:
    found = made("slurm", conf=conf.format(NODE))
    assert found.emulation.get("whole_nodes") is whole
    assert len(said(found)) == remarks


def test_resources_with_types_suffixes_and_without_consumption() -> None:
    conf = (
        "NodeName=n1 CPUs=4 Gres=gpu:tesla:1,gpu:2(S:0),bandwidth:lustre:no_consume:4G,nic\nPartitionName=p"
    )
    found = made("slurm", conf=conf)
    assert found.emulation["nodes"][0]["gres"] == {"gpu": 3, "bandwidth": 4 << 30, "nic": 1}
    assert not broken(found)
    assert said(found) == [
        "conf:1: Gres=bandwidth:lustre:no_consume:4G: a dry run does not know no_consume, so jobs consume "
        "the resource"
    ]


GRES = "AutoDetect=off\nNodeName=n[1-4] Name=gpu Count=2 File=/dev/nvidia[0-1]\n"


def test_gres_conf_is_no_list_of_nodes() -> None:
    conf = "NodeName=n[1-4] CPUs=32 Gres=gpu:2\nPartitionName=p"
    for files in ({"conf": conf, "gres": GRES}, {"gres": GRES, "conf": conf}):
        found = made("slurm", **files)
        assert found.emulation["nodes"] == [{"count": 4, "processors": 32, "gres": {"gpu": 2}, "pool": "p"}]
        assert said(found) == []


def test_a_device_that_no_node_has_is_named() -> None:
    conf = "NodeName=n[1-4] CPUs=32 Gres=gpu:2\nPartitionName=p"
    assert said(made("slurm", conf=conf, gres=f"{GRES}Name=mps Count=100")) == [
        "gres:3: Name=mps: no node has it in slurm.conf (Gres=), so no node of the dry run has it"
    ]


def test_files_that_belong_elsewhere_are_named() -> None:
    found = made(
        "slurm", conf=f"{NODE}PartitionName=p", other="SwitchName=s0 Nodes=n[1-4]\nSwitchName=s1 Nodes=n9"
    )
    assert said(found) == [
        "other:1: SwitchName=s0 is not carried over: it belongs to topology.conf",
        "other:2: SwitchName=s1 is not carried over: it belongs to topology.conf",
    ]


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (
            "SelecType=select/linear",
            "SelecType is no key of slurm.conf that is known here. Did you mean 'SelectType'",
        ),
        ("SuspendProgram=/bin/off", "SuspendProgram=/bin/off is not carried over: no node is switched off"),
        ("CompleteWait=30", "CompleteWait=30 is not carried over: jobs start while others complete"),
        ("BurstBufferType=burst_buffer/lua", "BurstBufferType=burst_buffer/lua is not carried over"),
        ("DownNodes=n1 State=DOWN", "DownNodes=n1 is not carried over: a dry run has these nodes"),
        ("SelectTypeParameters=CR_Core,CR_LLN", "SelectTypeParameters=CR_Core,CR_LLN is not carried over"),
        ("SchedulerNew=1", "SchedulerNew has no counterpart."),
        ("KillWait=30 SlurmctldPort=6817", ""),
        ("TopologyPlugin=topology/none", ""),
    ],
)
def test_a_key_is_carried_over_known_to_say_nothing_or_named(line: str, why: str) -> None:
    remarks = said(made("slurm", conf=f"PartitionName=p\n{line}"))
    assert [text.removeprefix("conf:2: ")[: len(why)] for text in remarks] == ([why] if why else [])


# ---------------------------------------------------------------------- weights, limits, tables


@pytest.mark.parametrize("weight", [".5", "0.5", "5.", "5"])
def test_weights_are_numbers_as_slurm_takes_them(weight: str) -> None:
    conf = f"PriorityType=priority/multifactor\nPriorityWeightTRES=CPU=100,Mem={weight}\nPartitionName=p"
    found = made("slurm", conf=conf)
    assert found.plugins["multifactor"]["weights"]["resource:memory"] == float(weight)
    assert said(found) == []


ENFORCED = "AccountingStorageEnforce=limits,qos\nPartitionName=p"


def test_minus_one_is_no_limit_and_costs_no_other() -> None:
    dump = (
        "Cluster - 'c':Fairshare=1\nParent - 'root'\nAccount - 'chem':Fairshare=1:MaxJobs=-1:GrpJobs=-1:"
        "GrpTRES=cpu=10,mem=-1:GrpTRESMins=cpu=-1:MaxWallDurationPerJob=-1:MaxTRESPerNode=-1\n"
        "Parent - 'chem'\nUser - 'u1':DefaultAccount='chem':MaxJobs=-1\n"
    )
    qos = "Name|Priority|GrpJobs|MaxJobsPU|MaxTRESPU|MaxWall\nnormal|0|-1|-1|cpu=-1|-1"
    found = made("slurm", conf=ENFORCED, dump=dump, qos=qos)
    assert found.plugins["limits"]["of"] == {"account": {"chem": {"processors": 10}}}
    assert said(found) == []


def test_a_users_minus_one_lifts_what_the_account_says_of_each_user() -> None:
    dump = (
        "Cluster - 'c'\nParent - 'root'\nAccount - 'a':MaxJobs=3\nParent - 'a'\n"
        "User - 'ann':MaxJobs=-1\nUser - 'bob'\n"
    )
    found = made("slurm", conf=ENFORCED, dump=dump)
    assert found.plugins["limits"]["of"] == {"association": {"a:bob": {"jobs": 3}}}


def test_types_of_resources_in_a_dump_and_thresholds() -> None:
    dump = (
        "Cluster - 'c'\nParent - 'root'\n"
        "Account - 'a':GrpTRES=cpu=9,gres/gpu:a100=8:GrpTRESMins=cpu=7:MinPrioThreshold=5\n"
    )
    found = made("slurm", conf=ENFORCED, dump=dump)
    limits = {"processors": 9, "resources": {"gpu:a100": 8.0}, "budget": 7.0}
    assert found.plugins["limits"]["of"] == {"account": {"a": limits}}
    assert said(found) == ["dump:3: minpriothreshold=5 is not carried over: priority thresholds"]


def test_a_table_for_people_is_one_sentence() -> None:
    qos = (
        "      Name   Priority     MaxWall\n---------- ---------- -----------\n"
        "    normal          0  1-00:00:00\n"
    )
    assert said(made("slurm", conf=ENFORCED, qos=qos)) == [
        "qos:1: expected columns with bars between them, found a table whose columns may be cut; print it "
        "with `sacctmgr -P show ...`"
    ]


@pytest.mark.parametrize(
    ("line", "told"),
    [
        (f"{NODE}PartitionName=p Nodes=n1 MaxTim=1-0", "MaxTim is no key of a partition's line"),
        (f"{NODE}PartitionName=p Nodes=n1 AlowAccounts=a", "Did you mean 'AllowAccounts'"),
        ("NodeName=n1 CPUs=4 RealMemry=1000\nPartitionName=p Nodes=n1", "RealMemry is no key of a node's"),
    ],
)
def test_a_mistyped_key_of_a_node_or_partition_is_named(line: str, told: str) -> None:
    assert any(told in remark for remark in said(made("slurm", conf=line)))


def test_a_mistyped_key_of_a_dumped_account_is_named() -> None:
    dump = (
        "Cluster - 'c':Fairshaer=3\nParent - 'root'\n"
        "Account - 'teach':Description='t':Organization='o':GrpTRESS=cpu=8:MaxWallDuration=240\n"
    )
    found = made("slurm", conf=f"{NODE}PartitionName=p Nodes=n1", dump=dump)
    assert any("Fairshaer is no key" in remark for remark in said(found))
    assert any("GrpTRESS is no key" in remark for remark in said(found))
