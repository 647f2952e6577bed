"""Arrays as the frames of pandas and polars, which headway does without."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any

from numpy.typing import NDArray

from headway.errors import UserError


def pandas_frame(array: NDArray[Any]) -> Any:
    """A structured array as a ``pandas.DataFrame``, a column a field; :class:`UserError` without pandas."""
    return _needed("pandas").DataFrame({name: array[name] for name in array.dtype.names or ()})


def polars_frame(array: NDArray[Any]) -> Any:
    """A structured array as a ``polars.DataFrame``, a column a field; :class:`UserError` without polars."""
    # Texts are objects there, which polars would keep as such.
    columns = {
        name: array[name].tolist() if array.dtype[name].hasobject else array[name].copy()
        for name in array.dtype.names or ()
    }
    return _needed("polars").DataFrame(columns)


def _needed(library: str) -> Any:
    if find_spec(library) is None:
        raise UserError(
            f"a frame of {library} needs {library}, not installed here: python -m pip install {library}"
        )
    return import_module(library)
