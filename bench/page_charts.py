"""The charts of the results page as values: what they show, in figures and in words."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Bars:
    """Bars side by side: one group after another, in each a bar of every series."""

    title: str
    groups: Sequence[str]
    series: Mapping[str, Sequence[float | None]]
    """A value for every group, by the series' name; None leaves its place empty."""
    unit: str
    """Of the values: "recall@5, %", "ms"."""
    log: bool = False


@dataclass(frozen=True, slots=True)
class Lines:
    """A line of points (x, y) for every series."""

    title: str
    series: Mapping[str, Sequence[tuple[float, float]]]
    x: str
    """What runs along, with its unit; so `y`."""
    y: str
    log_x: bool = False
    log_y: bool = False


@dataclass(frozen=True, slots=True)
class Dots:
    """A column of dots for every group: how much single cases differ, with their mean as a line."""

    title: str
    groups: Mapping[str, Sequence[float]]
    unit: str


Chart = Bars | Lines | Dots

_WHOLE = 100
"""From here on decimals say nothing."""


def check(chart: Chart) -> None:
    """Refuse what cannot be drawn.

    Raises:
        ValueError: there is nothing to draw, a series has not one value for each group, or a value that is
            not above 0 is to stand on a logarithmic axis.
    """
    logarithmic: list[float] = []
    match chart:
        case Bars():
            if any(len(values) != len(chart.groups) for values in chart.series.values()):
                raise ValueError(f"chart {chart.title!r}: a series does not have {len(chart.groups)} values")
            drawn = [value for values in chart.series.values() for value in values if value is not None]
            logarithmic += drawn if chart.log else []
        case Lines():
            points = [point for line in chart.series.values() for point in line]
            drawn = [y for _, y in points]
            logarithmic += [x for x, _ in points] if chart.log_x else []
            logarithmic += drawn if chart.log_y else []
        case Dots():
            drawn = [value for values in chart.groups.values() for value in values]
    if not drawn:
        raise ValueError(f"chart {chart.title!r} has nothing to draw")
    if any(value <= 0 for value in logarithmic):
        raise ValueError(f"chart {chart.title!r}: only what is above 0 can stand on a logarithmic axis")


def in_words(chart: Chart) -> str:
    """Return a chart's figures as sentences, for who cannot see it."""
    match chart:
        case Bars():
            told = {name: _listed(chart.groups, values) for name, values in chart.series.items()}
            about = chart.unit
        case Lines():
            told = {
                name: _listed([f"{x:g}" for x, _ in points], [y for _, y in points])
                for name, points in chart.series.items()
            }
            about = f"{chart.y} over {chart.x}"
        case Dots():
            told = {name: ", ".join(map(short, values)) for name, values in chart.groups.items()}
            about = chart.unit
    return f"{about}. {'. '.join(f'{name}: {each}' for name, each in told.items())}."


def short(value: float) -> str:
    """Return a figure in three digits, or in whole numbers above that."""
    return f"{value:,.0f}" if abs(value) >= _WHOLE else f"{value:.3g}"


def _listed(names: Sequence[str], values: Sequence[float | None]) -> str:
    pairs = zip(names, values, strict=True)
    return ", ".join(f"{name} {'–' if value is None else short(value)}" for name, value in pairs)
