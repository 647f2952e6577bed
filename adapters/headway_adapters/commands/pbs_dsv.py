"""Jobs as OpenPBS 23.06 prints them with ``qstat -f -F dsv -D SEPARATOR``: the escapes in the order in
which it applies them, as seen with every byte that a user can put into a job.

1. In a value, a separator gets a backslash before it, a backslash is doubled (but for one before a comma
   or a quote), a line break is ``\\n`` and a form feed ``\\f``.
2. Whatever then cannot be printed in the C locale is ``^`` and the byte plus 64, modulo 256: so byte 202
   makes a line break and byte 28 a backslash, neither of them escaped. Byte 192 ends the value.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_BACKSLASH = re.compile(rb"\\(?![,\"'])")
_UNPRINTABLE = re.compile(rb"[^\t\n\x20-\x7f]")


def listing(records: Mapping[str, Mapping[str, Any]], separator: str) -> str:
    """Job id -> attributes, in the order in which they stand; resource maps in maps of their own."""
    return "".join(
        separator.join([f"Job Id: {job_id}", *_attributes(record, separator)]) + "\n"
        for job_id, record in records.items()
    )


def _attributes(record: Mapping[str, Any], separator: str) -> list[str]:
    found = []
    for name, value in record.items():
        if name == "Variable_List" and isinstance(value, Mapping):
            listed = ",".join(f"{key}={re.sub(_LISTED, _BEFORE, str(v))}" for key, v in value.items())
            found.append(f"{name}={written(listed, separator)}")
        elif isinstance(value, Mapping):
            found += [f"{name}.{key}={written(str(v), separator)}" for key, v in value.items()]
        elif isinstance(value, list | tuple):
            found.append(f"{name}={written(', '.join(map(str, value)), separator)}")
        else:
            found.append(f"{name}={written(str(value), separator)}")
    return found


_LISTED = re.compile(r"[,\"'\\]")
_BEFORE = r"\\\g<0>"


def written(value: str, separator: str) -> str:
    """A value; bytes that are no UTF-8 as ``surrogateescape`` has them."""
    data = value.encode("utf-8", "surrogateescape")
    data = _BACKSLASH.sub(rb"\\\\", data).replace(separator.encode(), b"\\" + separator.encode())
    data = data.replace(b"\n", rb"\n").replace(b"\f", rb"\f")
    data = _UNPRINTABLE.sub(lambda match: b"^" + bytes([(match.group()[0] + 64) % 256]), data)
    return data.partition(b"\0")[0].decode("utf-8", "surrogateescape")
