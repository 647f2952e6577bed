"""Files that are compressed: told by what is in them, written as their names say."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import tarfile
import threading

import pytest

from headway.errors import UserError
from headway.workload import read_swf, read_trace, write_swf
from headway.workload.packed import opened, unpacked_name

LINE = "1 10 0 50 16 -1 -1 16 100 -1 1 1 1 1 1 1 -1 -1\n"
TEXT = ("; MaxProcs: 64\n" + LINE * 5000).encode()
WAYS = {".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("named", [True, False])
def test_is_read_whatever_its_name(tmp_path, way, named):
    path = tmp_path / f"log.swf{way if named else ''}"
    path.write_bytes(WAYS[way](TEXT))
    assert len(read_trace(path)) == len(read_swf(io.BytesIO(WAYS[way](TEXT)))) == 5000


@pytest.mark.parametrize("way", WAYS)
def test_several_packed_files_in_one_are_read_whole(tmp_path, way):
    path = tmp_path / f"log.swf{way}"
    path.write_bytes(WAYS[way](TEXT) + WAYS[way](TEXT))
    assert len(read_trace(path)) == 10000


@pytest.mark.parametrize("way", WAYS)
def test_what_is_cut_off_or_damaged_is_not_used(tmp_path, way):
    data = WAYS[way](os.urandom(9000).hex().encode() + b"\n" + TEXT)
    for found in (data[: len(data) // 2], data[:5000] + b"\x00" * 50 + data[5050:]):
        path = tmp_path / f"log.swf{way}"
        path.write_bytes(found)
        with pytest.raises(UserError, match=r"the compressed file is damaged or cut off after line \d+: "):
            read_trace(path)


@pytest.mark.parametrize(("way", "said"), [(".gz", "a gzip"), (".bz2", "a bzip2"), (".xz", "an xz")])
def test_a_name_that_promises_a_packing_is_held_to_it(tmp_path, way, said):
    path = tmp_path / f"log.swf{way}"
    path.write_bytes(TEXT)
    with pytest.raises(UserError, match=f"expected {said} file, as the name says, found other data"):
        read_trace(path)


@pytest.mark.parametrize("way", WAYS)
def test_is_written_as_the_name_says_and_each_time_the_same(tmp_path, way):
    record = [float(number) for number in LINE.split()]
    for name in ("a", "b"):
        write_swf(tmp_path / f"{name}.swf{way}", ["; MaxProcs: 64"], [record])
    first, second = ((tmp_path / f"{name}.swf{way}").read_bytes() for name in ("a", "b"))
    assert first == second != LINE.encode()
    assert read_trace(tmp_path / f"a.swf{way}").records.tolist() == [record]


def test_what_is_packed_otherwise_says_how_to_unpack_it(tmp_path):
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w:gz") as tar:
        tar.addfile(tarfile.TarInfo("log.swf"))
    for data, said in (
        (b"\x28\xb5\x2f\xfd rest", r"found zstd; unpack it \(zstd -d\)"),
        (b"PK\x03\x04 rest", r"found zip; unpack it \(unzip\)"),
        (archive.getvalue(), r"found tar; unpack it \(tar -xf\)"),
    ):
        (tmp_path / "log").write_bytes(data)
        with pytest.raises(UserError, match=said):
            read_trace(tmp_path / "log")


def test_a_pipe_that_gives_a_little_at_a_time_is_read_whole():
    reads, writes = os.pipe()

    def feed() -> None:
        with open(writes, "wb", buffering=0) as stream:
            for at in range(0, len(TEXT), 3001):
                stream.write(TEXT[at : at + 3001])

    feeder = threading.Thread(target=feed)
    feeder.start()
    with open(reads, "rb", buffering=0) as stream, opened(stream) as source:
        assert source.data() == TEXT
    feeder.join()


@pytest.mark.parametrize("name", ["a\0b.swf", "no/such/log.swf", "."])
def test_what_cannot_be_opened_is_said(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match="cannot be read: "):
        read_trace(name)


def test_the_ending_of_a_packing_is_no_part_of_the_format():
    assert [unpacked_name(f"log.swf{way}") for way in ("", *WAYS)] == ["log.swf"] * 4
