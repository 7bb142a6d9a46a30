"""Bytes written per byte of the application: by the file system to the device, and by an SSD to its flash."""

from collections.abc import Mapping

from fslab.report.figures import Figure, _axis, palette
from fslab.report.figures.styles import StackStyles

_PARTS = {"to the device": "system", "to the flash": "irq"}


def figure(key: str, workload: str, factors: Mapping[str, tuple[float, float]], looks: StackStyles) -> Figure:
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
    scale = {"domain": list(_PARTS), "range": [palette.colour(name) for name in _PARTS.values()]}
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
