"""What is not installed with the daemon: libraries that plots and statistics need, and those of clusters.

Those of the extra ``report`` are three fifths of a full installation; a daemon runs without them.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec

from headway.errors import UserError

#: Modules of the extra ``report``, and what they are called.
_REPORT = {"matplotlib": "matplotlib", "PIL": "Pillow", "scipy": "SciPy"}


#: Of the extra ``cluster``.
_CLUSTER = {"distributed": "Dask (distributed)"}

#: Of the extra ``parquet``.
_PARQUET = {"pyarrow": "pyarrow"}


def need_report(what: str) -> None:
    """Raise :class:`UserError` that says how to install what ``what`` needs, if it is not there."""
    _need(what, _REPORT, "report")


def need_cluster(what: str) -> None:
    """The same for campaigns on a Dask cluster."""
    _need(what, _CLUSTER, "cluster")


def need_parquet(what: str) -> None:
    """The same for results as Parquet."""
    _need(what, _PARQUET, "parquet")


def _need(what: str, modules: Mapping[str, str], extra: str) -> None:
    missing = [name for module, name in modules.items() if find_spec(module) is None]
    if missing:
        raise UserError(
            f"{what} needs {', '.join(missing)}, not installed here: install headway with its extra "
            f"`{extra}` (python -m pip install '.[{extra}]' in a checkout, 'FILE.whl[{extra}]' for a wheel)"
        )
