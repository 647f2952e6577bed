"""The keys that lines of nodes, partitions and dumped associations may have: a mistyped one is seen.

After slurm.conf(5) and sacctmgr(1) of Slurm 22.05 to 24.11.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from headway.errors import nearest

_NODE = """
    ActiveFeatures AvailableFeatures BcastAddr Boards CoreSpecCount CoresPerSocket CpuBind CPUs CPUSpecList
    Feature Features Gres MemSpecLimit NodeAddr NodeHostname NodeName Parameters Port Procs RealMemory Reason
    RestrictedCoresPerGPU Sockets SocketsPerBoard State ThreadsPerCore TmpDisk Topology TRESWeights Weight
"""
_PARTITION = """
    AllocNodes AllowAccounts AllowGroups AllowQOS Alternate CpuBind Default DefaultTime DefCpuPerGPU
    DefMemPerCPU DefMemPerGPU DefMemPerNode DenyAccounts DenyQOS DisableRootJobs ExclusiveTopo ExclusiveUser
    GraceTime Hidden JobDefaults LLN MaxCPUsPerNode MaxCPUsPerSocket MaxMemPerCPU MaxMemPerNode MaxNodes
    MaxTime MinNodes Nodes OverSubscribe OverTimeLimit PartitionName PowerDownOnIdle PreemptMode Priority
    PriorityJobFactor PriorityTier QOS ReqResv ResumeTimeout RootOnly SelectTypeParameters Shared State
    SuspendTime SuspendTimeout Topology TRESBillingWeights
"""
_ASSOCIATION = """
    Account AdminLevel Classification Cluster Comment Coordinator DefaultAccount DefaultQOS DefaultWCKey
    Description Fairshare Flags GrpJobs GrpJobsAccrue GrpSubmitJobs GrpTRES GrpTRESMins GrpTRESRunMins GrpWall
    Lineage MaxJobs MaxJobsAccrue MaxSubmitJobs MaxTRES MaxTRESMins MaxTRESMinsPerJob MaxTRESPerJob
    MaxTRESPerNode MaxTRESRunMins MaxWall MaxWallDuration MaxWallDurationPerJob MinPrioThreshold Organization
    Parent ParentName Partition Priority QOS Share Shares User WCKeys
"""
#: First key of a line of slurm.conf, or "" for an association of a dump -> what it may say, and what it is.
_KEYS = {
    first: ({name.lower(): name for name in names.split()}, what)
    for first, names, what in (
        ("nodename", _NODE, "a node's line"), ("partitionname", _PARTITION, "a partition's line"),
        ("", _ASSOCIATION, "a dumped account or user"),
    )
}  # fmt: skip


def unknown_keys(first: str, keys: Iterable[str]) -> Iterator[tuple[str, str]]:
    """The ``keys`` that such a line cannot have, and what to say of each. ``first``: "nodename",
    "partitionname", or "" for an account or user of a dump."""
    known, what = _KEYS[first]
    for key in keys:
        if key.lower() not in known:
            hint = nearest(key, known.values())
            meant = hint if "Did you mean" in hint else ""
            yield key, f"is no key of {what} that is known here.{meant}"
