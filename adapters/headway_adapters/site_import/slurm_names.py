"""The keys of slurm.conf that ``scontrol`` of Slurm 22.05 and of 24.11 take, and a few older keys."""

from __future__ import annotations

#: All keys there are, as Slurm spells them.
_NAMES = """
    AccountingStorageBackupHost AccountingStorageEnforce AccountingStorageExternalHost
    AccountingStorageHost AccountingStorageLoc AccountingStorageParameters AccountingStoragePass
    AccountingStoragePort AccountingStorageTRES AccountingStorageType AccountingStorageUser
    AccountingStoreFlags AccountingStoreJobComment AcctGatherEnergyType AcctGatherFilesystemType
    AcctGatherInfinibandType AcctGatherInterconnectType AcctGatherNodeFreq AcctGatherProfileType
    AllowSpecResourcesUsage AuthAltParameters AuthAltTypes AuthInfo AuthType BackupAddr BackupController
    BatchStartTimeout BcastExclude BcastParameters BOOT_TIME BurstBufferParameters BurstBufferType
    CacheGroups CertmgrParameters CertmgrType CheckpointType ChosLoc CliFilterPlugins ClusterName
    CommunicationParameters CompleteWait ControlAddr ControlMachine CoreSpecPlugin CpuFreqDef
    CpuFreqGovernors CredType CryptoType DataParserParameters DebugFlags DefaultStorageHost
    DefaultStorageLoc DefaultStoragePass DefaultStoragePort DefaultStorageType DefaultStorageUser
    DefCpuPerGPU DefMemPerCPU DefMemPerGPU DefMemPerNode DependencyParameters DisableRootJobs EioTimeout
    EnforcePartLimits Epilog EpilogMsgTime EpilogSlurmctld ExtSensorsFreq ExtSensorsType
    FairShareDampeningFactor FastSchedule FederationParameters FirstJobId GetEnvTimeout GpuFreqDef
    GresTypes GroupUpdateForce GroupUpdateTime HASH_VAL HashPlugin HealthCheckInterval
    HealthCheckNodeState HealthCheckProgram InactiveLimit InteractiveStepOptions JobAcctGatherFrequency
    JobAcctGatherParams JobAcctGatherType JobAcctLogFile JobCheckpointDir JobCompHost JobCompLoc
    JobCompParams JobCompPass JobCompPort JobCompType JobCompUser JobContainerType JobCredentialPrivateKey
    JobCredentialPublicCertificate JobDefaults JobFileAppend JobRequeue JobSubmitPlugins KeepAliveTime
    KillOnBadExit KillWait LaunchParameters LaunchType LayoutsPath Licenses LogTimeFormat MailDomain
    MailProg MaxArraySize MaxBatchRequeue MaxDBDMsgs MaxJobCount MaxJobId MaxMemPerCPU MaxMemPerNode
    MaxNodeCount MaxStepCount MaxTasksPerNode MCSParameters MCSPlugin MemLimitEnforce MessageTimeout
    MinJobAge MpiDefault MpiParams MsgAggregationParams MULTIPLE_SLURMD NEXT_JOB_ID NodeFeaturesPlugins
    OverTimeLimit PluginDir PlugStackConfig PowerParameters PowerPlugin PreemptExemptTime PreemptMode
    PreemptParameters PreemptType PrEpParameters PrEpPlugins PriorityCalcPeriod PriorityDecayHalfLife
    PriorityFavorSmall PriorityFlags PriorityMaxAge PriorityParameters PrioritySiteFactorParameters
    PrioritySiteFactorPlugin PriorityType PriorityUsageResetPeriod PriorityWeightAge PriorityWeightAssoc
    PriorityWeightFairShare PriorityWeightJobSize PriorityWeightPartition PriorityWeightQOS
    PriorityWeightTRES PrivateData ProctrackType Prolog PrologEpilogTimeout PrologFlags PrologSlurmctld
    PropagatePrioProcess PropagateResourceLimits PropagateResourceLimitsExcept RebootProgram ReconfigFlags
    RequeueExit RequeueExitHold ResumeFailProgram ResumeProgram ResumeRate ResumeTimeout ResvEpilog
    ResvOverRun ResvProlog ReturnToService RoutePlugin SallocDefaultCommand SbcastParameters SchedulerAuth
    SchedulerParameters SchedulerPort SchedulerRootFilter SchedulerTimeSlice SchedulerType ScronParameters
    SelectType SelectTypeParameters SLURM_CONF SLURM_VERSION SlurmctldAddr SlurmctldDebug SlurmctldHost
    SlurmctldLogFile SlurmctldParameters SlurmctldPidFile SlurmctldPlugstack SlurmctldPort
    SlurmctldPrimaryOffProg SlurmctldPrimaryOnProg SlurmctldSyslogDebug SlurmctldTimeout SlurmdDebug
    SlurmdLogFile SlurmdParameters SlurmdPidFile SlurmdPort SlurmdSpoolDir SlurmdSyslogDebug SlurmdTimeout
    SlurmdUser SlurmSchedLogFile SlurmSchedLogLevel SlurmUser SrunEpilog SrunPortRange SrunProlog
    StateSaveLocation SuspendExcNodes SuspendExcParts SuspendExcStates SuspendProgram SuspendRate
    SuspendTime SuspendTimeout SwitchParameters SwitchType TaskEpilog TaskPlugin TaskPluginParam
    TaskProlog TCPTimeout TLSParameters TLSType TmpFS TopologyParam TopologyPlugin TrackWCKey TreeWidth
    UnkillableStepProgram UnkillableStepTimeout UsePam VSizeFactor WaitTime X11Parameters
"""
#: In lower case -> as Slurm spells it.
SPELT = {name.lower(): name for name in _NAMES.split()}
#: In lower case.
KNOWN = frozenset(SPELT)
#: Of lines about nodes and partitions.
_RECORDS = frozenset({"nodename", "partitionname", "nodeset", "downnodes", "frontendname"})


def is_first_key(key: str) -> bool:
    """Whether a line of slurm.conf can begin with a key (lower case)."""
    return key in KNOWN or key in _RECORDS
