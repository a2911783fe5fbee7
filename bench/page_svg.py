"""The charts of the results page, drawn by matplotlib as SVG that stands inside HTML.

Text stays text, in the page's font and colour, so that it can be read aloud, searched and shown in the dark.
Series differ by hatching, or by marker and stroke, as well as by colour. The colours are those of Okabe and
Ito ("Color universal design", 2008), which colour-blind readers can tell apart, with a grey for their black
and a darker yellow: both must show on white and on black.
"""

import re
from collections.abc import Iterator, Sequence
from hashlib import sha256
from html import escape
from io import StringIO
from itertools import cycle, islice
from typing import TYPE_CHECKING, Any

from lamina.bench.page_charts import Bars, Chart, Dots, Lines, check, in_words, short
from lamina.streams.errors import Misconfigured

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#8f8f8f", "#b0a000")
HATCHES = ("", "///", "\\\\\\", "xx", "--", "||", "++", "//////")
"""Of lines alone: matplotlib writes each circle of the others as a path of its own."""
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
STROKES = (
    "solid",
    (0, (6, 3)),
    (0, (3, 3)),
    (0, (1, 2)),
    (0, (8, 2, 2, 2)),
    (0, (6, 2, 1, 2)),
    (0, (4, 2, 1, 2, 1, 2)),
    (0, (2, 1)),
)
"""Of lines: where several lie on each other, the lower ones show through the gaps of the upper."""
INK = "#010203"
"""Stands for the page's text colour until the drawing is done."""
WIDTH, HEIGHT = 9.0, 3.6
"""Inches, at 72 units of the drawing each."""
MOST_LABELLED = 24
"""Bars that still have room for their values."""
MOST_IN_A_LINE = 75
"""Characters that stand beside each other below a drawing."""

_SETTINGS: dict[Any, Any] = {
    "svg.fonttype": "none",
    "text.parse_math": False,
    "font.size": 10,
    "text.color": INK,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "hatch.color": INK,
    "hatch.linewidth": 0.4,
}


def svg_of(chart: Chart) -> str:
    """Return a chart as an SVG element for a page, with its title and its figures in words.

    Raises:
        Misconfigured: matplotlib, of the extra `bench`, is not installed.
        ValueError: it cannot be drawn (`check`).
    """
    check(chart)
    try:
        # It takes half a second to import, which only who wants a page shall wait for.
        from matplotlib import rc_context  # noqa: PLC0415
        from matplotlib.figure import Figure  # noqa: PLC0415
    except ImportError as exc:
        raise Misconfigured("the results page needs matplotlib: pip install 'lamina[bench]'") from exc
    salt = sha256(repr(chart).encode()).hexdigest()[:12]
    with rc_context({**_SETTINGS, "svg.hashsalt": salt}):
        figure = Figure(figsize=(WIDTH, HEIGHT), layout="constrained")
        axes = figure.add_subplot()
        axes.spines[["top", "right"]].set_visible(False)
        match chart:
            case Bars():
                _bars(chart, axes)
            case Lines():
                _lines(chart, axes)
            case Dots():
                _dots(chart, axes)
        return _inline(_saved(figure), chart, salt)


def _bars(chart: Bars, axes: "Axes") -> None:
    width = 0.8 / len(chart.series)
    labelled = len(chart.series) * len(chart.groups) <= MOST_LABELLED
    looks = zip(chart.series.items(), cycle(COLOURS), cycle(HATCHES), strict=False)
    for number, ((name, values), colour, hatch) in enumerate(looks):
        left = -0.4 + (number + 0.5) * width
        places = [(place + left, value) for place, value in enumerate(values) if value is not None]
        look: dict[str, Any] = {"color": colour, "edgecolor": INK, "linewidth": 0.4, "hatch": hatch}
        drawn = axes.bar([x for x, _ in places], [y for _, y in places], width, label=name, **look)
        if labelled:
            axes.bar_label(drawn, fmt=short, fontsize=8, padding=1)
    _named(chart.groups, axes)
    axes.set_ylabel(chart.unit)
    if chart.log:
        _by_magnitude(axes)
    _legend(axes, len(chart.series))


def _lines(chart: Lines, axes: "Axes") -> None:
    looks = zip(chart.series.items(), cycle(COLOURS), cycle(MARKERS), cycle(STROKES), strict=False)
    for (name, points), colour, marker, stroke in looks:
        xs, ys = [x for x, _ in points], [y for _, y in points]
        axes.plot(xs, ys, label=name, color=colour, linestyle=stroke, **_marked(marker))
    axes.set_xlabel(chart.x)
    axes.set_ylabel(chart.y)
    if chart.log_x:
        ticks = sorted({x for points in chart.series.values() for x, _ in points})
        axes.set_xscale("log")
        axes.set_xticks(ticks, [f"{tick:,g}" for tick in ticks])
        axes.minorticks_off()
    if chart.log_y:
        _by_magnitude(axes)
    elif all(y >= 0 for points in chart.series.values() for _, y in points):
        axes.set_ylim(bottom=0)
    _legend(axes, len(chart.series))


def _dots(chart: Dots, axes: "Axes") -> None:
    colours = islice(cycle(COLOURS), len(chart.groups))
    for place, (values, colour) in enumerate(zip(chart.groups.values(), colours, strict=True)):
        axes.plot([place] * len(values), list(values), linestyle="none", color=colour, **_marked("o"))
        if values:
            axes.hlines(sum(values) / len(values), place - 0.25, place + 0.25, color=INK, linewidth=1.2)
    _named(list(chart.groups), axes)
    axes.set_xlim(-0.6, len(chart.groups) - 0.4)
    axes.set_ylabel(chart.unit)


def _named(groups: Sequence[str], axes: "Axes") -> None:
    """Write the names of the groups below them, slanted where they would run into each other."""
    slanted = sum(len(name) + 1 for name in groups) > MOST_IN_A_LINE
    look: dict[str, Any] = {"rotation": 35, "ha": "right", "rotation_mode": "anchor"} if slanted else {}
    axes.set_xticks(range(len(groups)), list(groups), **look)


def _marked(marker: str) -> dict[str, Any]:
    return {"marker": marker, "markersize": 6, "markeredgecolor": INK, "markeredgewidth": 0.4}


def _by_magnitude(axes: "Axes") -> None:
    """Make the axis of values logarithmic, with plain numbers beside it."""
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:,g}")


def _legend(axes: "Axes", series: int) -> None:
    if series > 1:
        axes.legend(frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0), fontsize=9)


def _saved(figure: "Figure") -> str:
    written = StringIO()
    figure.savefig(written, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    return written.getvalue()


def _inline(svg: str, chart: Chart, salt: str) -> str:
    """Return a drawing as an element that can stand beside others on one page.

    Ids that the drawing does not refer to itself would stand on the page several times: they go. Those that
    it refers to are salted already.
    """
    opening, drawing = svg[svg.index("<svg ") :].split(">", 1)
    opening = re.sub(r' (?:width|height|version|xmlns(?::\w+)?)="[^"]*"', "", opening)
    named = f'role="img" aria-labelledby="t{salt} d{salt}"'
    title, words = escape(chart.title), escape(in_words(chart))
    told = f'<title id="t{salt}">{title}</title><desc id="d{salt}">{words}</desc>'
    used = set(re.findall(r'(?:url\(#|href="#)([^")]+)', drawing))
    return f"{opening} {named}>{told}{''.join(_tidied(drawing, used))}"


def _tidied(drawing: str, used: set[str]) -> Iterator[str]:
    """Yield the drawing tag by tag; what stands between tags is text of the chart and stays as it is."""
    drawing = re.sub(r"<metadata>.*?</metadata>|<style.*?</style>", "", drawing, flags=re.DOTALL)
    for piece in re.split(r"(<[^>]*>)", drawing):
        if not piece.startswith("<"):
            yield piece
            continue
        tag = re.sub(r' id="([^"]*)"', lambda found: found[0] if found[1] in used else "", piece)
        tag = re.sub(r"font-family: [^;\"]*;? ?", "", tag)
        yield tag.replace(INK, "currentColor").replace("xlink:href", "href")
