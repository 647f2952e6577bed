"""Whatever a workload's file holds, commands that read it give a result or a sentence, never a traceback."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import re
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path

from accounting_texts import LIMITED, PBS
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.cli import main

FIXTURES = Path(__file__).parents[1] / "framework" / "workload" / "fixtures"
SWF = b"""; MaxProcs: 64
; UnixStartTime: 1000000000
1 10 0 50 16 -1 -1 16 100 -1 1 1 1 1 1 1 -1 -1
2 20 0 50.5 16 -1 -1 16 100 -1 0 2 1 1 1 1 1 5
2 30 0 50 16 -1 -1 16 100 -1 2 2 1 1 1 1 -1 -1
"""
CWF = b"""; MaxProcs: 64
1 0 -1 100 4 -1 -1 4 200 -1 1 -1 -1 -1 -1 -1 -1 -1 -1 S -1
2 5 -1 100 4 -1 -1 4 200 -1 1 -1 -1 -1 -1 -1 -1 -1 90 S -1
1 9 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 ET 60
"""
GWF = b"# MaxProcs: 64\n" + b"".join(
    b"%d\t%d\t5\t60\t4\t57.5\t-1\t4\t600\t-1\t1\tU1\tG0\tX2\tQ1\t-1\tA\tB\tC" % (number, 1109000000 + number)
    + b"\t-1" * 10 + b"\n"
    for number in (1, 2)
)  # fmt: skip
BATSIM = json.dumps({
    "nb_res": 4,
    "jobs": [{"id": "1", "subtime": 1, "res": 2, "walltime": 9, "profile": "d"},
             {"id": "2", "subtime": 2.5, "res": 1, "profile": "s"}],
    "profiles": {"d": {"type": "delay", "delay": 5}, "s": {"type": "composed", "repeat": 2, "seq": ["d"]}},
}).encode()  # fmt: skip
GRIDENGINE = (
    b"all.q:n1:users:ann:sim:3:sge:0:1491390300:1491390307:1491390413:0:0:106" + b":0" * 17
    + b":NONE:dept:mpi:16:0:1.5:0.0:0.0:-l h_rt=60:0.0:NONE:0.0:0:0\n"
)  # fmt: skip
WIDTHS = b"""JobID      JobName  Start               End                 State
---------- -------- ------------------- ------------------- ----------
7               sim 2026-11-20T09:00:00 2026-11-20T09:01:00  COMPLETED
8               sim 2026-11-20T09:00:00 2026-11-20T09:01:00 CANCELLED+
"""
SEEDS = {
    "a.swf": SWF, "a.cwf": CWF, "a.gwf": GWF, "a.json": BATSIM, "sacct.txt": LIMITED.encode(),
    "widths.txt": WIDTHS, "pbs.txt": PBS.encode(), "gridengine.txt": GRIDENGINE,
    "lsf.txt": (FIXTURES / "lsb.events").read_bytes() + (FIXTURES / "lsb.acct").read_bytes(),
}  # fmt: skip
#: What somebody, or a bad disk, may put anywhere.
WORDS = (
    b"nan", b"inf", b"-inf", b"1e308", b"-1e308", b"-0", b"", b"9" * 20, b"9" * 400, b"-1", b"0", b"1e-320",
    b"12345678901", b"1_0", b"0x1F", "٣".encode(), b"\x00", b"\xff\xfe", b"\xef\xbb\xbf", b"\n", b"\r\n",
    b"\t", b" ", b"|", b";", b":", b'"', b"{", b"[" * 2000,
)  # fmt: skip
_WORD = re.compile(rb'[^\s|;:,="{}\[\]]+')
COMMANDS = (
    ("analyze", "{}", "--processors", "64"),
    ("convert", "{}", "out.swf"),
    ("convert", "{}", "out.json", "--drop-extensions"),
    ("convert", "{}", "out.cwf.bz2", "--strict"),
    ("dry-run", "--trace", "{}", "--processors", "64", "--limit", "50"),
    ("dry-run", "--trace", "{}", "--feedback", "chains"),
    ("estimates", "fit", "{}"),
)


@st.composite
def mutated(draw: st.DrawFn) -> tuple[str, bytes]:
    """A small file of some format, in which a few places are other than they were, or anything at all."""
    name = draw(st.sampled_from(sorted(SEEDS)))
    if draw(st.integers(0, 9)) == 0:
        return name, draw(st.binary(max_size=300))
    data = SEEDS[name]
    for _ in range(draw(st.integers(0, 4))):
        begin = draw(st.integers(0, len(data)))
        end = begin + draw(st.integers(0, 9))
        if draw(st.booleans()) and (word := _WORD.search(data, begin)):
            begin, end = word.span()
        data = data[:begin] + draw(st.sampled_from(WORDS) | st.binary(max_size=6)) + data[end:]
    return name, data


def packed(name: str, data: bytes, way: str, damage: int | None) -> tuple[str, bytes]:
    made = {"": bytes, ".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}[way](data)
    if damage is not None and made:
        at = damage % len(made)
        made = made[:at] + bytes([made[at] ^ 0x55]) + made[at + 1 + damage % 3 :]
    return name + way, made


def ended(words: list[str]) -> tuple[object, str]:
    """The exit code of `headway` with these arguments, and what it said on standard error."""
    said = StringIO()
    with redirect_stdout(StringIO()), redirect_stderr(said):
        try:
            main(words)
        except SystemExit as stop:
            return stop.code or 0, said.getvalue()
    return 0, said.getvalue()


@settings(max_examples=150)
@given(
    file=mutated(),
    way=st.sampled_from(["", "", ".gz", ".bz2", ".xz"]),
    damage=st.none() | st.none() | st.integers(0, 10**6),
    command=st.sampled_from(COMMANDS),
)
def test_a_file_gives_a_result_or_a_sentence(tmp_path_factory, file, way, damage, command):
    place = tmp_path_factory.mktemp("any", numbered=True)
    name, data = packed(*file, way, damage if way else None)
    (place / name).write_bytes(data)
    words = [word.format(place / name) for word in command]
    words = [str(place / word) if word.startswith("out.") else word for word in words]
    code, said = ended(words)
    assert code in (0, 1, 2), said
    assert "Traceback" not in said
    assert code == 0 or said.strip()
