"""Whether new jobs are left to Slurm while headway is away: what ``headway check`` says of it.

The submit filter reads the heartbeat (:mod:`headway_adapters.polling.heartbeat`) in a file of its own
machine, and has its path and its patience in its text.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from headway.adapter import Check
from headway.errors import Failure
from headway.inputs.shipped import shipped
from headway_adapters.polling import heartbeat
from headway_adapters.polling.heartbeat import SUBJECT, heartbeat_file, read_word
from headway_adapters.slurm.options import SlurmOptions

_PATH = re.compile(r'^local\s+HEARTBEAT\s*=\s*"([^"]*)"', re.MULTILINE)
_PATIENCE = re.compile(r"^local\s+PATIENCE\s*=\s*([0-9]+)", re.MULTILINE)


def expected(text: str) -> tuple[str, int] | None:
    """The path and the patience (seconds) that a filter's text has; None: it reads no heartbeat. The path is
    "" where it is switched off."""
    path, patience = _PATH.search(text), _PATIENCE.search(text)
    if path is None or patience is None:
        return None
    return (path[1], int(patience[1])) if int(patience[1]) else ("", 0)


def check(options: SlurmOptions, script: Path, text: str) -> Check:
    """The line of ``headway check``. ``script``, ``text``: slurmctld's script; "" where it cannot be read
    from here."""
    ours = options.heartbeat if options.patience else None
    filters = expected(text) if text else None
    if text and filters is None and ours is not None:
        said = f"{script} reads no heartbeat: while headway is away new jobs wait"
        return Check(
            SUBJECT, False, said, f"install {shipped('slurm/job_submit.lua')} as {script}", helps=True
        )
    if filters is not None and filters != (ours or "", options.patience if ours else 0):
        return _disagree(options, script, *filters)
    found = heartbeat.check(options)
    if text or ours is None or not found.ok:
        return found
    remedy = (
        f'see that {script} on slurmctld\'s machine has HEARTBEAT = "{ours}" and PATIENCE = '
        f"{options.patience}"
    )
    said = f"{found.detail}; {script} cannot be read from here"
    return Check(SUBJECT, True, said, remedy, known=False)


def _disagree(options: SlurmOptions, script: Path, path: str, patience: int) -> Check:
    ours = options.heartbeat if options.patience else None
    written = f"headway writes {ours}, patience {options.patience} s" if ours else "headway writes none"
    read = f"reads {path}, patience {patience} s" if path else "waits for headway without end"
    said = f"{script} {read}, and {written}"
    if path and path != ours:
        said += f": after {patience} s new jobs enter unheld while headway drives"
    want = f'HEARTBEAT = "{ours}" and PATIENCE = {options.patience}' if ours else 'HEARTBEAT = ""'
    remedy = f"set {want} in {script}"
    if path:
        remedy += f", or cluster.options.heartbeat: {path} and patience: {patience}"
    return Check(SUBJECT, False, said, remedy, helps=True).for_driving()


def held_then(options: SlurmOptions, text: str) -> Callable[[float], bool]:
    """Whether the filter held what was submitted at a moment (absolute seconds), as far as the heartbeat
    says: while headway is silent it holds nothing."""
    filters = expected(text) if text else None
    path = filters[0] if filters is not None else (options.heartbeat or "" if not text else "")
    if not path:
        return lambda submitted: True
    file = heartbeat_file(options)
    word = None
    if file is not None:
        try:
            word = read_word(file.read())
        except Failure:
            word = None
        finally:
            file.close()
    if word is None or not word.drives:
        return lambda submitted: False
    first, last = word.since, word.at + options.patience
    return lambda submitted: first < submitted < last
