"""headway: an external scheduler for real batch systems and for an emulated cluster.

``headway.run``, ``headway.compare`` and ``headway.load`` are for notebooks and programs
(``docs/notebooks.md``).
"""

from typing import TYPE_CHECKING

from headway.inputs.late import late
from headway.inputs.old_paths import serve_old_paths
from headway.version import __version__

if TYPE_CHECKING:
    from headway.notebook import Comparison, Run, compare, load, run

__all__ = ["Comparison", "Run", "__version__", "compare", "load", "run"]

serve_old_paths()

__getattr__ = late(__name__, {"headway.notebook": "Comparison Run compare load run"})
