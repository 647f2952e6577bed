"""Libraries that the daemon does without: for reports, SSH, clusters, protection, HTTP, terminals.

The libraries of the extra ``report`` are three fifths of a full installation; a daemon runs without them.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec

from headway.errors import UserError

#: Extra -> its modules, and what they are called.
_EXTRAS: Mapping[str, Mapping[str, str]] = {
    "report": {"jinja2": "Jinja2", "matplotlib": "matplotlib", "PIL": "Pillow", "scipy": "SciPy"},
    "ssh": {"paramiko": "Paramiko"},
    "prediction": {"scipy": "SciPy"},
    "security": {"cryptography": "cryptography"},
    "cluster": {"distributed": "Dask (distributed)"},
    "parquet": {"pyarrow": "pyarrow"},
    "api": {
        "jwt": "PyJWT", "prometheus_client": "prometheus-client", "starlette": "Starlette",
        "uvicorn": "uvicorn",
    },
    "top": {"textual": "Textual"},
}  # fmt: skip


def need_report(what: str) -> None:
    """Raise :class:`UserError` that says how to install what ``what`` needs, if it is not there."""
    _need(what, "report")


def need_ssh(what: str) -> None:
    """The same for commands on another machine."""
    _need(what, "ssh")


def need_prediction(what: str) -> None:
    """The same for predictions by regression."""
    _need(what, "prediction")


def need_security(what: str) -> None:
    """The same for carrying security levels out."""
    _need(what, "security")


def need_cluster(what: str) -> None:
    """The same for campaigns on a Dask cluster."""
    _need(what, "cluster")


def need_parquet(what: str) -> None:
    """The same for results as Parquet."""
    _need(what, "parquet")


def need_api(what: str) -> None:
    """The same for the interface over HTTP and its metrics."""
    _need(what, "api")


def need_top(what: str) -> None:
    """The same for the daemon in a terminal."""
    _need(what, "top")


def extra_of(error: Exception) -> str:
    """The extra whose library an import misses (``"report"``); empty where it is another error."""
    module = (error.name or "").partition(".")[0] if isinstance(error, ModuleNotFoundError) else ""
    return next((extra for extra, modules in _EXTRAS.items() if module in modules), "")


def how_to_install(extra: str) -> str:
    """The words that say how an extra is installed."""
    return (
        f"install headway with its extra `{extra}` (python -m pip install '.[{extra}]' in a checkout, "
        f"'FILE.whl[{extra}]' for a wheel)"
    )


def _need(what: str, extra: str) -> None:
    missing = [name for module, name in _EXTRAS[extra].items() if find_spec(module) is None]
    if missing:
        raise UserError(f"{what} needs {', '.join(missing)}, not installed here: {how_to_install(extra)}")
