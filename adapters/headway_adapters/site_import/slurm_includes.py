"""The files that lines ``include FILE`` of slurm.conf and gres.conf name.

What is in an included file counts where the line stands. A relative name is relative to the folder of the
file that has the line; Slurm takes that of slurm.conf. A file that was given to the import as well is read
there and not twice.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from headway.errors import UserError
from headway_adapters.site_import.found import Imported, Line, read_lines, readable

_INCLUDE = re.compile(r"\s*include\s+(\"[^\"]*\"|\S+).*", re.IGNORECASE)
#: So many files may include each other.
_DEEPEST = 16


def with_included(
    lines: Sequence[Line], given: frozenset[Path], found: Imported, depth: int = 1
) -> Iterator[Line]:
    """The lines, with the lines of included files in the place of the line that names them.

    ``given``: the files that are read anyway, resolved. Remarks files that cannot be read.
    """
    for line in lines:
        match = _INCLUDE.fullmatch(line.text.partition("#")[0])
        if match is None:
            yield line
            continue
        path = Path(line.file).parent / match[1].strip('"')
        try:
            resolved = path.resolve()
            if resolved in given:
                continue
            if depth > _DEEPEST:
                raise UserError(f"{path}: expected at most {_DEEPEST} files that include each other")
            inside = list(readable(read_lines(path), found))
        except (UserError, OSError, ValueError, RuntimeError) as error:
            found.leave(line, f"{match[1]} is included; give that file as well ({error})")
            continue
        yield from with_included(inside, given | {resolved}, found, depth + 1)


def resolved_files(files: Sequence[Sequence[Line]]) -> frozenset[Path]:
    """The files that these lines are of, resolved."""
    return frozenset(Path(lines[0].file).resolve() for lines in files if lines)
