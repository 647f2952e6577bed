"""The same command for many jobs: few commands, and what became of each job."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence

import msgspec

from headway_adapters.polling.commands import Commands
from headway_adapters.slurm import writer
from headway_adapters.slurm.client import is_silence
from headway_adapters.transport import Result

#: Jobs that are released, or taken over, with one command.
_AT_ONCE = 64


def for_all(
    commands: Commands,
    job_ids: Sequence[str],
    write: Callable[[Sequence[str]], Sequence[str]],
    *,
    seconds: float = math.inf,
) -> dict[str, Result | None]:
    """Do the same to jobs, in this order, with few commands; what became of each: None if it was not
    tried, since Slurm did not answer or ``seconds`` were over."""
    found: dict[str, Result | None] = dict.fromkeys(job_ids)
    end = time.monotonic() + seconds
    for at in range(0, len(job_ids), _AT_ONCE):
        part = job_ids[at : at + _AT_ONCE]
        result = commands.change([write(part)])[0]
        if result is None:
            break
        refused = {key: writer.refused_for(key, result.stderr) for key in part}
        if result.ok or is_silence(result) or len(part) == 1:
            found.update(dict.fromkeys(part, result))
        elif any(refused.values()):
            for key, said in refused.items():
                found[key] = msgspec.structs.replace(result, rc=1 if said else 0, stderr=said)
        else:
            # Something went wrong, and Slurm does not say for which job.
            again = commands.change([write([key]) for key in part])
            found.update(zip(part, again, strict=True))
        if is_silence(result) or time.monotonic() > end:
            break
    return found
