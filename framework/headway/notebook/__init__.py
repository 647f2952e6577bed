"""headway from Python: runs, comparisons and their results as arrays and frames (``docs/notebooks.md``)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headway.inputs.late import late

if TYPE_CHECKING:
    from headway.notebook.comparing import compare
    from headway.notebook.comparison import Comparison
    from headway.notebook.loading import load
    from headway.notebook.running import run
    from headway.notebook.runs import Run

__all__ = ["Comparison", "Run", "compare", "load", "run"]

__getattr__ = late(
    __name__,
    {
        ".comparing": "compare",
        ".comparison": "Comparison",
        ".loading": "load",
        ".running": "run",
        ".runs": "Run",
    },
)
