"""Hop-bounded recoverability: how far every archived unit is from a visible one (All-Mem eq. 3, app. G)."""

from collections.abc import Mapping
from dataclasses import dataclass
from uuid import UUID

from lamina.streams.records import Kind, LinkType


@dataclass(frozen=True, slots=True)
class Graph:
    """The units of a namespace by id with their visibility, and its links."""

    visible: Mapping[UUID, bool]
    kinds: Mapping[UUID, Kind]
    links: tuple[tuple[UUID, UUID, LinkType], ...]
