"""Have the shard's pages at hand before a question needs them.

The engine maps its files into memory and leaves it to page faults to bring them in, one point at a time. On
virtual machines a fault can cost 50 to 100 µs even where the file is in the system's cache: the first
question to a namespace of 200 turns waited 18 ms for their leaves, and 1.5 ms once their pages were mapped.
Mapping them all takes 0.4 s at 100,000 turns, at the start. What is written afterwards is mapped by writing.
"""

import ctypes
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

_MAPS = Path("/proc/self/maps")
_POPULATE_READ = 22
"""Linux 5.14 and later; an older kernel refuses it, and faults come as they did."""
_WORTH = ("payload_storage", "vector_storage-dense")
"""What questions read, most urgent first."""
_FIELDS = 6

log = logging.getLogger(__name__)


class _Mapping(NamedTuple):
    start: int
    size: int


def warm(shard: Path, most_bytes: int) -> int:
    """Map the pages of a shard that this process has open; return how many bytes were asked for.

    The pages are the system's cache: it takes them back when memory is short.

    Args:
        shard: its folder.
        most_bytes: what does not fit is left to faults.
    """
    populated = 0
    for kind in _WORTH:
        for mapping in _mappings(shard, kind):
            if populated + mapping.size > most_bytes:
                return populated
            if not _populate(mapping):
                return populated
            populated += mapping.size
    return populated


def _mappings(shard: Path, kind: str) -> Iterator[_Mapping]:
    """Yield where the files of a kind are mapped; nothing on systems that do not tell."""
    if not _MAPS.exists():
        return
    for line in _MAPS.read_text().splitlines():
        fields = line.split(None, _FIELDS - 1)
        if len(fields) == _FIELDS and fields[-1].startswith(f"{shard}/") and f"/{kind}/" in fields[-1]:
            start, end = (int(address, 16) for address in fields[0].split("-"))
            yield _Mapping(start, end - start)


def _populate(mapping: _Mapping) -> bool:
    libc = ctypes.CDLL(None, use_errno=True)
    address, size = ctypes.c_void_p(mapping.start), ctypes.c_size_t(mapping.size)
    refused = libc.madvise(address, size, ctypes.c_int(_POPULATE_READ))
    if refused:
        log.info("the system maps no pages ahead (errno %d): first questions take longer", ctypes.get_errno())
    return not refused
