"""Policies of papers that are several plugins together, under the names that the papers give them.

R. Kumar, Z. Shae, H. Jamjoom: Scheduling Batch and Heterogeneous Jobs with Runtime Elasticity in a
Parallel Processing Environment. 2012, Table III: the suffix -D is a dedicated queue, -E a processor of
elastic commands. Its other three are the plugins ``easy``, ``los`` and ``delayed-los`` themselves, and
Hybrid-LOS, which has its dedicated queue built in, is the plugin ``hybrid-los``.

As in the paper, processors are kept for the earliest group of dedicated jobs only.
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
