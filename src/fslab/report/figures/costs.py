"""What work costs: bytes written per byte of the application, and CPU time by kind."""

from collections.abc import Mapping
from typing import Any

from fslab.report.figures import Figure, _axis, styles
from fslab.report.figures.styles import StackStyles
from fslab.units import Unit

_PARTS = {"to the device": "system", "to the flash": "irq"}

KINDS = {
    "user": "programs",
    "system": "the kernel",
    "irq": "interrupts",
    "iowait": "idle, waiting for I/O",
    "steal": "taken by the hypervisor",
}


def amplification_figure(
    key: str, workload: str, factors: Mapping[str, tuple[float, float]], looks: StackStyles
) -> Figure:
    """Return the figure.

    ``factors``: stack label → write amplification of the file system, and that of the device; medians of the trials.
    """
    present = looks.only(list(factors))
    data = [
        {"stack": label, "part": part, "factor": _axis.rounded(value)}
        for label, (of_filesystem, of_device) in factors.items()
        for part, value in zip(_PARTS, (of_filesystem, of_filesystem * of_device), strict=True)
    ]
    title = f"{workload}: write amplification"
    scale = {"domain": list(_PARTS), "range": [styles.colour(name) for name in _PARTS.values()]}
    axis_title = "bytes written per byte of the application"
    rule = {"type": "rule", "strokeDash": [4, 3]}
    spec = _axis.base(
        title, data={"values": data}, height=44 * len(factors),
        layer=[
            _axis.layer(
                "factors", {"type": "bar"},
                y=_axis.names("stack", present.labels, 260),
                yOffset=_axis.name("part", sort=list(_PARTS)),
                x=_axis.quantity("factor", axis_title),
                color=_axis.name("part", scale=scale),
                tooltip=_axis.tooltip(stack="", part="", factor=".3~r"),
            ),
            _axis.layer("one", rule, [{"factor": 1}], x=_axis.quantity("factor", axis_title)),
        ],
    )  # fmt: skip
    return Figure(
        id=key,
        title=title,
        spec=spec,
        caption="What the file system writes to the device, and the SSD to its flash. The dashed line: what the "
        "application wrote.",
        alt=f"Write amplification of {workload} by file system and device, for {', '.join(present.labels)}.",
        marks={"factors": len(data), "one": 1},
    )


def cpu_figure(
    key: str, workload: str, shares: Mapping[str, Mapping[str, float]], looks: StackStyles
) -> Figure:
    """Return the figure. ``shares``: stack label → key of ``KINDS`` → percent of all CPUs, mean of usable trials."""
    present = looks.only(list(shares))
    used = [kind for kind in KINDS if any(each.get(kind, 0) >= 0.5 for each in shares.values())]
    data = [
        {
            "stack": stack,
            "kind": KINDS[kind],
            "order": order,
            "percent": _axis.rounded(shares[stack].get(kind, 0.0)),
        }
        for stack in present.labels
        for order, kind in enumerate(used)
    ]
    bars = _axis.layer("share", {"type": "bar", "height": 15}, **_encoding(present, used))
    spec = _axis.base(
        f"{workload}: CPU time", height=24 * max(len(present.labels), 1), data={"values": data}, layer=[bars]
    )
    return Figure(
        id=key,
        title=f"{workload}: CPU time",
        spec=spec,
        caption="Mean of the usable trials, while the tool ran; the rest of the bar to 100 % was idle.",
        alt=f"CPU time of {workload}: "
        + "; ".join(
            f"{stack} " + ", ".join(f"{KINDS[kind]} {shares[stack].get(kind, 0):.0f} %" for kind in used)
            for stack in present.labels
        )
        + ".",
        marks={"share": len(data)},
    )


def _encoding(present: StackStyles, used: list[str]) -> dict[str, Any]:
    colours = {"domain": [KINDS[kind] for kind in used], "range": [styles.colour(kind) for kind in used]}
    return {
        "y": _axis.names("stack", present.labels, 260),
        "x": _axis.quantity(
            "percent",
            "share of all CPUs",
            stack="zero",
            axis=_axis.value_axis(Unit.PERCENT),
            scale={"domainMin": 0},
        ),
        "order": {"field": "order"},
        "color": _axis.name("kind", scale=colours),
        "tooltip": [*_axis.tooltip(stack="", kind=""), {"field": "percent", "title": "%", "format": ".3~r"}],
    }
