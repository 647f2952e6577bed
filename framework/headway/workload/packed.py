"""Files as they are read and written, compressed or not: gzip, bzip2 and xz.

Reading goes by a file's first bytes, writing by the ending of its name. Formats see plain bytes.
"""

from __future__ import annotations

import importlib
import io
import os
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from typing import IO, Any, cast

from headway.errors import Failure, UserError

#: Bytes at a file's beginning that its format is told by.
BEGINNING = 1 << 16


@dataclass(frozen=True)
class _Packing:
    """One way to compress."""

    name: str
    ending: str
    #: A packed file's first bytes.
    magic: bytes
    module: str
    kind: str
    #: What its file object is made with for writing: equal data makes equal files.
    writing: dict[str, Any]

    def reading(self, stream: IO[bytes]) -> IO[bytes]:
        return cast(IO[bytes], self._made(stream, mode="rb"))

    def writer(self, stream: IO[bytes]) -> IO[bytes]:
        return cast(IO[bytes], self._made(stream, mode="wb", **self.writing))

    def _made(self, stream: IO[bytes], **how: Any) -> Any:
        try:
            module = importlib.import_module(self.module)
        except ImportError as error:
            raise Failure(f"{self.name} is not in this Python's standard library: {error}") from error
        keyword = "fileobj" if self.module == "gzip" else "filename"
        return getattr(module, self.kind)(**{keyword: stream}, **how)


_PACKINGS = (
    # No name and no time in it.
    _Packing("gzip", ".gz", b"\x1f\x8b", "gzip", "GzipFile", {"filename": "", "mtime": 0}),
    _Packing("bzip2", ".bz2", b"BZh", "bz2", "BZ2File", {}),
    _Packing("xz", ".xz", b"\xfd7zXZ\x00", "lzma", "LZMAFile", {}),
)

#: What else people pack with: the first bytes, where they stand, what it is called, and what unpacks it.
_OTHERS = (
    (b"\x28\xb5\x2f\xfd", 0, "zstd", "zstd -d"),
    (b"PK\x03\x04", 0, "zip", "unzip"),
    (b"7z\xbc\xaf\x27\x1c", 0, "7-Zip", "7z x"),
    (b"\x1f\x9d", 0, "compress", "uncompress"),
    (b"\x04\x22\x4d\x18", 0, "lz4", "lz4 -d"),
    (b"ustar", 257, "tar", "tar -xf"),
)

#: What a name may end in beside its format.
ENDINGS = tuple(packing.ending for packing in _PACKINGS)


@dataclass(frozen=True)
class Source:
    """An open file of a workload, unpacked: its name for messages, its first bytes, and all of them."""

    path: str
    #: At most :data:`BEGINNING` bytes; all of a file that is not longer.
    beginning: bytes
    #: From the first byte on. Reading raises :class:`UserError` where the file is damaged and
    #: :class:`Failure` where the system fails.
    stream: IO[bytes]

    def data(self) -> bytes:
        """All of it, where a format cannot be read in pieces."""
        blocks = []
        while block := self.stream.read(1 << 20):
            blocks.append(block)
        return b"".join(blocks)


@contextmanager
def opened(path_or_file: str | os.PathLike[str] | IO[bytes]) -> Iterator[Source]:
    """Open a path, or take a binary stream, which is left open.

    Raises :class:`UserError` if the file is missing, unreadable, a directory, damaged, or not packed as the
    ending of its name says.
    """
    if hasattr(path_or_file, "read"):
        stream = cast(IO[bytes], path_or_file)
        yield _source(stream, str(getattr(stream, "name", "trace")))
        return
    path = os.fspath(cast("str | os.PathLike[str]", path_or_file))
    with ExitStack() as stack:
        try:
            file = stack.enter_context(open(path, "rb"))
        except (OSError, ValueError) as error:  # ValueError: a null byte in the name
            raise UserError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}") from error
        yield _source(file, path)


def unpacked_name(path: str | os.PathLike[str]) -> str:
    """The name without the ending of a packing, such as ``.gz``."""
    name = os.fspath(path)
    return next((name.removesuffix(end) for end in ENDINGS if name.endswith(end)), name)


def _source(stream: IO[bytes], path: str) -> Source:
    plain = _Checked(stream, path)
    start = plain.read_fully(max(len(packing.magic) for packing in _PACKINGS))
    packing = next((one for one in _PACKINGS if start.startswith(one.magic)), None)
    said = next((one for one in _PACKINGS if path.endswith(one.ending)), None)
    if packing is None and said is not None:
        article = "an" if said.name == "xz" else "a"
        raise UserError(f"{path}: expected {article} {said.name} file, as the name says, found other data")
    whole = _Checked(_Prefixed(start, plain), path)
    if packing is not None:
        unpacked = packing.reading(cast(IO[bytes], io.BufferedReader(whole)))
        whole = _Checked(unpacked, path, packed=True)
    beginning = whole.read_fully(BEGINNING)
    for magic, at, name, command in _OTHERS:
        if beginning.startswith(magic, at):
            raise UserError(
                f"{path}: expected a file that is plain, or packed with gzip, bzip2 or xz, "
                f"found {name}; unpack it ({command})"
            )
    return Source(path, beginning, cast(IO[bytes], _Prefixed(beginning, whole)))


class _Checked(io.RawIOBase):
    """A stream whose errors are said for a person."""

    def __init__(self, stream: Any, path: str, packed: bool = False) -> None:
        self._stream = stream
        self._path = path
        self._packed = packed
        self._lines = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            data: bytes = self._stream.read(len(buffer)) or b""
        except (EOFError, zlib.error) as error:
            raise self._damaged(error) from error
        except OSError as error:
            if self._packed and error.errno is None:  # not the system's, but what was unpacked
                raise self._damaged(error) from error
            if isinstance(error, IsADirectoryError):
                raise UserError(f"{self._path}: cannot be read: {error.strerror}") from error
            raise Failure(f"{self._path}: reading failed: {error.strerror or error}") from error
        except Exception as error:
            if not self._packed or isinstance(error, UserError | Failure):
                raise
            raise self._damaged(error) from error  # xz has an error class of its own
        self._lines += data.count(b"\n")
        buffer[: len(data)] = data
        return len(data)

    def read_fully(self, size: int) -> bytes:
        """So many bytes, or all that there are."""
        found = bytearray()
        while len(found) < size and (data := self.read(size - len(found))):
            found += data
        return bytes(found)

    def _damaged(self, error: Exception) -> UserError:
        return UserError(
            f"{self._path}: the compressed file is damaged or cut off after line {self._lines}: {error}; "
            "nothing of it is used"
        )


class _Prefixed(io.RawIOBase):
    """A stream whose first bytes were already read: pipes cannot be rewound."""

    def __init__(self, prefix: bytes, rest: Any) -> None:
        self._prefix = prefix
        self._rest = rest

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if self._prefix:
            data, self._prefix = self._prefix[: len(buffer)], self._prefix[len(buffer) :]
        else:
            data = self._rest.read(len(buffer)) or b""
        buffer[: len(data)] = data
        return len(data)


@contextmanager
def output(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """A binary file that becomes ``path`` when all went well, packed as the ending of the name says.

    Raises :class:`Failure` if it cannot be written; then nothing is there that was not there before.
    """
    path = os.fspath(path)
    directory, name = os.path.split(path)
    temporary = os.path.join(directory, f".{name[:200]}.{os.getpid()}.tmp")
    packing = next((one for one in _PACKINGS if path.endswith(one.ending)), None)
    try:
        try:
            with open(temporary, "xb") as file:
                if packing is None:
                    yield file
                else:
                    with packing.writer(file) as packed:
                        yield packed
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, path)
        finally:
            with suppress(OSError):
                os.unlink(temporary)
    except (OSError, ValueError) as error:
        if isinstance(error, ValueError) and "\0" not in path:
            raise
        raise Failure(f"{path}: cannot be written: {getattr(error, 'strerror', None) or error}") from error
