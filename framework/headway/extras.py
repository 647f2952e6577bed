"""What is not installed with the daemon: libraries that plots and statistics need.

They come with the extra ``report`` and are three fifths of a full installation; a daemon runs without them.
"""

from __future__ import annotations

from importlib.util import find_spec

from headway.errors import UserError

#: Modules of the extra ``report``, and what they are called.
_REPORT = {"matplotlib": "matplotlib", "PIL": "Pillow", "scipy": "SciPy"}


def need_report(what: str) -> None:
    """Raise :class:`UserError` that says how to install what ``what`` needs, if it is not there."""
    missing = [name for module, name in _REPORT.items() if find_spec(module) is None]
    if missing:
        raise UserError(
            f"{what} needs {', '.join(missing)}, not installed here: install headway with its extra `report` "
            "(python -m pip install '.[report]' in a checkout, 'FILE.whl[report]' for a wheel)"
        )
