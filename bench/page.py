"""The results page: one HTML file with context, definitions, tables and charts, that needs nothing else.

It loads nothing, sends nothing, and its own policy runs no script but the one that sorts its tables; without
scripts it reads the same. Everything that a benchmark passes in is escaped. Charts repeat what tables hold:
a reader who sees none of them misses no figure.
"""

from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from importlib.resources import files
from typing import Literal

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from lamina.bench.page_charts import Chart
from lamina.bench.page_svg import svg_of

Format = Literal["text", "count", "share", "number"]
"""How a column is written: as it is, 1,234, 12.3 %, or 12.3."""
Cell = str | float | None
"""A figure that was not taken is None and is shown as a dash."""


@dataclass(frozen=True, slots=True)
class Column:
    """A heading and how the cells below it are written."""

    heading: str
    format: Format = "text"


@dataclass(frozen=True, slots=True)
class Table:
    """Figures with a caption; its rows can be sorted by each column."""

    title: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[Cell]]


@dataclass(frozen=True, slots=True)
class Section:
    """A heading, a sentence or more, then tables and charts in their order."""

    heading: str
    says: str
    parts: Sequence[Table | Chart]


@dataclass(frozen=True, slots=True)
class Page:
    """All that a reader needs to judge a run of a benchmark."""

    title: str
    context: Mapping[str, str]
    """What the figures were made from, by name: data, n, embedder, machine, …"""
    sections: Sequence[Section]
    definitions: Mapping[str, str]
    """What each word of the tables means, by word."""


def render(page: Page) -> str:
    """Return the page as HTML.

    Raises:
        Misconfigured: matplotlib, of the extra `bench`, is not installed.
        ValueError: a row has more or fewer cells than its table has columns, or a chart cannot be drawn.
    """
    folder = files("lamina.bench")
    script = (folder / "page.js").read_text(encoding="utf-8")
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["cell"] = written
    return environment.from_string((folder / "page.html").read_text(encoding="utf-8")).render(
        page=page,
        sections=[(section, [_drawn(part) for part in section.parts]) for section in page.sections],
        script=Markup(script),  # noqa: S704  # our own file
        policy=b64encode(sha256(script.encode()).digest()).decode(),
        style=Markup((folder / "page.css").read_text(encoding="utf-8")),  # noqa: S704  # our own file
    )


def written(cell: Cell, format_: Format) -> str:
    """Return a cell as it is shown; what was not taken is a dash."""
    if cell is None:
        return "–"
    if isinstance(cell, str):
        return cell
    match format_:
        case "count":
            return f"{cell:,.0f}"
        case "share":
            return f"{100 * cell:.1f} %"
        case "number":
            return f"{cell:,.1f}"
        case "text":
            return str(cell)


def _drawn(part: Table | Chart) -> tuple[Table | Chart, Markup | None]:
    """Return a part with its drawing; a table has none."""
    if isinstance(part, Table):
        if any(len(row) != len(part.columns) for row in part.rows):
            raise ValueError(f"table {part.title!r}: a row does not have {len(part.columns)} cells")
        return part, None
    return part, Markup(svg_of(part))  # noqa: S704  # drawn here, its texts escaped there
