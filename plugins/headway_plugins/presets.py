"""Policies of papers that are several plugins together, under the names that the papers give them.

R. Kumar, Z. Shae, H. Jamjoom: Scheduling Batch and Heterogeneous Jobs with Runtime Elasticity in a
Parallel Processing Environment. 2012, Table III: the suffix -D is a dedicated queue, -E a processor of
elastic commands. Its other three are the plugins ``easy``, ``los`` and ``delayed-los`` themselves, and
Hybrid-LOS, which has its dedicated queue built in, is the plugin ``hybrid-los``.

As in the paper, processors are kept for the earliest group of dedicated jobs only.

A. Chandio, K. Bilal, N. Tziritas, Z. Yu, Q. Jiang, S. Khan, C. Xu: A comparative study on resource
allocation and energy efficient job scheduling strategies in large-scale parallel computing systems.
Cluster Computing, 2014, section 5: each of five orders of the queue under a strict rule and, with the
suffix -FF, under a greedy one, and Algorithm 1: three of them with DVFS (the suffix -EE), for which
the cluster needs an energy profile. The order of submission needs no plugin. Its FCFS, EASY and K-reserved
are the plugins ``fcfs``, ``easy`` and ``k-reserved`` themselves.

X. Liu, B. Chen, X. Qiu, Y. Cai, K. Huang: Scheduling Parallel Jobs Using Migration and Consolidation in the
Cloud. 2012: its three algorithms are variants of the plugin ``consolidation``.

F. Liu, J. B. Weissman: Elastic Job Bundling. SC 2015: EASY with the plugin ``bundling``.

D. Tsafrir, Y. Etsion, D. G. Feitelson: Backfilling Using System-Generated Predictions Rather Than User
Runtime Estimates. IEEE TPDS 18(6), 2007: EASY whose backfill is shortest first, and EASY++, the same with
predictions.

E. Medernach: Workload Analysis of a Cluster in a Grid Environment. JSSPP 2005, Table 1: the site's Maui, with
its priorities of queues and its limits on their running jobs.
"""

from __future__ import annotations

from typing import Any

from headway.plugins import Preset

_KUMAR = (
    "R. Kumar, Z. Shae, H. Jamjoom: Scheduling Batch and Heterogeneous Jobs with Runtime Elasticity "
    "in a Parallel Processing Environment, 2012"
)
_DEDICATED: tuple[str, dict[str, Any]] = ("dedicated", {"freeze": "first"})
_ELASTIC: tuple[str, dict[str, Any]] = ("elastic", {})

EASY_D = Preset("EASY with a dedicated queue.", (("easy", {}), _DEDICATED), _KUMAR)
LOS_D = Preset("LOS with a dedicated queue.", (("los", {}), _DEDICATED), _KUMAR)
EASY_E = Preset("EASY with elastic commands.", (("easy", {}), _ELASTIC), _KUMAR)
LOS_E = Preset("LOS with elastic commands.", (("los", {}), _ELASTIC), _KUMAR)
DELAYED_LOS_E = Preset("Delayed-LOS with elastic commands.", (("delayed-los", {}), _ELASTIC), _KUMAR)
EASY_DE = Preset(
    "EASY with a dedicated queue and elastic commands.", (("easy", {}), _DEDICATED, _ELASTIC), _KUMAR
)
LOS_DE = Preset(
    "LOS with a dedicated queue and elastic commands.", (("los", {}), _DEDICATED, _ELASTIC), _KUMAR
)
HYBRID_LOS_E = Preset("Hybrid-LOS with elastic commands.", (("hybrid-los", {}), _ELASTIC), _KUMAR)

_CHANDIO = (
    "A. Chandio and others: A comparative study on resource allocation and energy efficient job "
    "scheduling strategies in large-scale parallel computing systems, Cluster Computing, 2014"
)
_STRICT: tuple[str, dict[str, Any]] = ("strict", {})
_GREEDY: tuple[str, dict[str, Any]] = ("greedy", {})
_SMALLEST: tuple[str, dict[str, Any]] = ("smallest-first", {})
_LARGEST: tuple[str, dict[str, Any]] = ("largest-first", {})
_SHORTEST: tuple[str, dict[str, Any]] = ("shortest-first", {})
_LONGEST: tuple[str, dict[str, Any]] = ("longest-first", {})

FCFS_FF = Preset("In order of submission, skipping jobs that do not fit.", (_GREEDY,), _CHANDIO)
SJF = Preset("Smallest job first.", (_STRICT, _SMALLEST), _CHANDIO)
SJF_FF = Preset("Smallest job first, skipping jobs that do not fit.", (_GREEDY, _SMALLEST), _CHANDIO)
LJF = Preset("Largest job first.", (_STRICT, _LARGEST), _CHANDIO)
LJF_FF = Preset("Largest job first, skipping jobs that do not fit.", (_GREEDY, _LARGEST), _CHANDIO)
MINET = Preset("Shortest estimate first.", (_STRICT, _SHORTEST), _CHANDIO)
MINET_FF = Preset("Shortest estimate first, skipping jobs that do not fit.", (_GREEDY, _SHORTEST), _CHANDIO)
MAXET = Preset("Longest estimate first.", (_STRICT, _LONGEST), _CHANDIO)
MAXET_FF = Preset("Longest estimate first, skipping jobs that do not fit.", (_GREEDY, _LONGEST), _CHANDIO)
_EE: tuple[str, dict[str, Any]] = ("dvfs", {"deadlines": "random"})
SJF_EE = Preset("Smallest job first, as slowly as its deadline allows.", (_STRICT, _SMALLEST, _EE), _CHANDIO)
LJF_EE = Preset("Largest job first, as slowly as its deadline allows.", (_STRICT, _LARGEST, _EE), _CHANDIO)
LJFFF_EE = Preset(
    "Largest job first, skipping jobs that do not fit, as slowly as its deadline allows.",
    (_GREEDY, _LARGEST, _EE),
    _CHANDIO,
)
WINDOW_K = Preset("Any job that fits among the ten first jobs in the queue.", (("window", {}),), _CHANDIO)

_LIU = (
    "X. Liu, B. Chen, X. Qiu, Y. Cai, K. Huang: Scheduling Parallel Jobs Using Migration and Consolidation "
    "in the Cloud, 2012"
)
KEASY = Preset(
    "EASY over two tiers; a background job that comes to the foreground on other processors begins again.",
    (("consolidation", {"variant": "keasy"}),),
    _LIU,
)
REASY = Preset(
    "EASY over two tiers; a background job comes to the foreground on its own processors only.",
    (("consolidation", {"variant": "reasy"}),),
    _LIU,
)
MEASY = Preset(
    "EASY over two tiers; a background job that comes to the foreground on other processors is moved and "
    "keeps its work.",
    (("consolidation", {"variant": "measy"}),),
    _LIU,
)

EJB = Preset(
    "EASY with elastic job bundling: wide jobs begin on several small subjobs.",
    (("bundling", {}), ("easy", {})),
    "F. Liu, J. B. Weissman: Elastic Job Bundling: An Adaptive Resource Request Strategy for Large-Scale "
    "Parallel Applications, SC 2015",
)

#: The defaults of the three schedulers; `headway import` reads what a site configured.
LIKE_SLURM = Preset(
    "Like Slurm: multifactor priorities with fair tree; every job that is looked at is booked.",
    (
        ("conservative", {"queue_depth": 500, "window": 86400, "resolution": 60}),
        (
            "multifactor",
            {"weights": {"age": 1000, "fairshare": 10000, "size": 1000, "pool": 1000, "qos": 1000}},
        ),
        ("fair-tree", {"half_life": 7 * 86400}),
    ),
    "slurm.schedmd.com: Multifactor Priority Plugin; Fair Tree Fairshare Algorithm; Scheduling "
    "Configuration Guide",
)
LIKE_MAUI = Preset(
    "Like Maui: waiting time and fair share in windows; one booking; the first job that fits is backfilled.",
    (
        ("easy", {}),
        ("multifactor", {"weights": {"age": 144000, "fairshare": 20000}, "max_age": 100 * 86400}),
        ("windows", {"interval": 86400, "depth": 7, "decay": 0.8}),
    ),
    "Maui administrator's guide: Job Prioritization; Fairshare; Backfill",
)
LIKE_PBS = Preset(
    "Like PBS with strict_ordering and fair_share: most deserving job first, one booking.",
    (
        ("easy", {}),
        ("multifactor", {"weights": {"fairshare": 1}}),
        ("fair-tree", {"half_life": 86400}),
    ),
    "PBS Professional administrator's guide: Scheduling",
)

_TSAFRIR = (
    "D. Tsafrir, Y. Etsion, D. G. Feitelson: Backfilling Using System-Generated Predictions Rather Than User "
    "Runtime Estimates, IEEE TPDS 18(6), 2007"
)
_SJBF: tuple[str, dict[str, Any]] = ("easy", {"backfill": "shortest-first"})
EASY_SJBF = Preset("EASY, the shortest jobs backfilled first.", (_SJBF,), _TSAFRIR)
EASY_PLUS_PLUS = Preset(
    "EASY with predictions from the user's last two jobs, the shortest jobs backfilled first.",
    (_SJBF, ("recent", {})),
    _TSAFRIR,
)

MAUI_GRID = Preset(
    "Strict order by the priority of queues, which rises with the wait; 130 running jobs of a queue.",
    (_STRICT, ("queue-priority", {}), ("limits", {"of": {"qos+pool": {"*+*": {"jobs": 130}}}})),
    "E. Medernach: Workload Analysis of a Cluster in a Grid Environment, JSSPP 2005",
)
