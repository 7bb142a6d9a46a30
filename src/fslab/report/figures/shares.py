"""Where the CPU time went while the tool ran: shares of all CPUs, stacked, one bar per stack."""

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
    """``shares``: by stack (label), percent of all CPUs by a key of ``KINDS``; means over the usable trials."""
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
    spec = {
        **_axis.base(),
        "height": 24 * max(len(present.labels), 1),
        "description": f"{workload}: CPU time",
        "usermeta": {},
        "data": {"values": data},
        "layer": [
            {
                "name": "share",
                "mark": {"type": "bar", "height": 15},
                "encoding": _encoding(present, used),
            }
        ],
    }
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
    return {
        "y": {
            "field": "stack",
            "type": "nominal",
            "sort": list(present.labels),
            "title": None,
            "axis": {"grid": False, "labelLimit": 260},
        },
        "x": {
            "field": "percent",
            "type": "quantitative",
            "title": "share of all CPUs",
            "stack": "zero",
            "axis": _axis.value_axis(Unit.PERCENT),
            "scale": {"domainMin": 0},
        },
        "order": {"field": "order"},
        "color": {
            "field": "kind",
            "type": "nominal",
            "scale": {
                "domain": [KINDS[kind] for kind in used],
                "range": [palette.colour(kind) for kind in used],
            },
        },
        "tooltip": [
            {"field": "stack"},
            {"field": "kind"},
            {"field": "percent", "title": "%", "format": ".3~r"},
        ],
    }
