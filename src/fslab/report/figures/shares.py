"""CPU time while the tool ran, by kind, in percent of all CPUs. One stacked bar per stack."""

from collections.abc import Mapping
from typing import Any

from fslab.report.figures import Figure, _axis, palette
from fslab.report.figures.styles import StackStyles
from fslab.units import Unit

KINDS = {
    "user": "programs",
    "system": "the kernel",
    "irq": "interrupts",
    "iowait": "idle, waiting for I/O",
    "steal": "taken by the hypervisor",
}


def figure(key: str, workload: str, shares: Mapping[str, Mapping[str, float]], looks: StackStyles) -> Figure:
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
        f"{workload}: CPU time",
        height=24 * max(len(present.labels), 1), data={"values": data}, layer=[bars],
    )  # fmt: skip
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
    colours = {"domain": [KINDS[kind] for kind in used], "range": [palette.colour(kind) for kind in used]}
    return {
        "y": _axis.names("stack", present.labels, 260),
        "x": _axis.quantity(
            "percent", "share of all CPUs",
            stack="zero", axis=_axis.value_axis(Unit.PERCENT), scale={"domainMin": 0},
        ),
        "order": {"field": "order"},
        "color": _axis.name("kind", scale=colours),
        "tooltip": [
            *_axis.tooltip(stack="", kind=""), {"field": "percent", "title": "%", "format": ".3~r"}
        ],
    }  # fmt: skip
