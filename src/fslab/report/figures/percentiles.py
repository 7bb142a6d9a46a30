"""Latency percentiles as curves. They show how slow the slowest operations are; each step of the axis adds one nine."""

import math
from collections.abc import Mapping

from fslab.report.figures import Figure, _axis
from fslab.report.figures.styles import StackStyles
from fslab.units import Unit

# The 100th percentile (the maximum) would be at infinity on an axis of nines.
_LABELS = "datum.value < 0.31 ? '50 %' : format(100 - 100 * pow(10, -datum.value), '.6~r') + ' %'"


def figure(
    key: str, workload: str, operation: str, curves: Mapping[str, Mapping[float, float]], looks: StackStyles
) -> Figure:
    """Return the figure. ``curves``: stack label → percentile → latency in ns, medians over the usable trials."""
    present = looks.only(list(curves))
    data = [
        {"stack": stack, "p": percent, "nines": _axis.rounded(-math.log10(1 - percent / 100)), "ns": _axis.rounded(ns)}
        for stack, curve in curves.items()
        for percent, ns in sorted(curve.items())
        if 50 <= percent < 100 and ns > 0
    ]  # fmt: skip
    last = max((row["nines"] or 0.0 for row in data if isinstance(row["nines"], float)), default=1.0)
    ticks = [0.30103, *(float(nine) for nine in range(1, math.ceil(last) + 1))]
    scale = {"domain": [0.30103, max(last, 1.0)], "nice": False}
    encoding = {
        "x": _axis.quantity(
            "nines", f"share of {operation}s that took no longer",
            scale=scale, axis={"values": ticks, "labelExpr": _LABELS},
        ),
        "y": _axis.quantity(
            "ns", f"{operation} latency", scale={"type": "log"},
            axis=_axis.value_axis(Unit.NANOSECONDS, gridOpacity=_axis.DECADES),
        ),
        "color": present.colour(), "strokeDash": present.dash(),
        "tooltip": [
            {"field": "stack", "title": "stack"}, {"field": "p", "title": "percentile"},
            {"field": "ns", "title": "latency (ns)", "format": ".4~s"},
        ],
    }  # fmt: skip
    layers = [
        _axis.layer("curve", {"type": "line", "strokeWidth": 2}),
        _axis.layer("percentile", {"type": "point", "filled": True, "size": 34}, shape=present.shape()),
    ]
    description = f"{workload}: {operation} latency percentiles"
    spec = _axis.base(description, height=240, data={"values": data}, encoding=encoding, layer=layers)
    return Figure(
        id=key, title=f"{workload}: {operation} latency by percentile", spec=spec,
        caption="Medians of the trials' percentiles. Each step to the right is ten times rarer.",
        alt=f"Latency of {operation}s of {workload} by percentile, a curve for each of {', '.join(present.labels)}.",
        marks={"percentile": len(data), "curve": len({str(row['stack']) for row in data})},
    )  # fmt: skip
