"""The arguments and options of ``fslab compare``. Prints nothing."""

from typing import Annotated

import typer

SIDE = (
    "A campaign (id, the beginning of one, 'last', 'last~1'), a JSON file of fslab export, or several with commas: "
    "then each counts once, by its median."
)
FirstArgument = Annotated[
    str | None,
    typer.Argument(metavar="[A]", help=f"{SIDE} Default: 'last~1', or 'last' if stacks are named."),
]
SecondArgument = Annotated[
    str | None,
    typer.Argument(metavar="[B]", help="The same; it is given relative to A. Default: 'last'."),
]
StackOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME",
        help="Only this stack, by its name or its file system. Given twice: the first of A against the "
        "second of B, or of A if no B is named.",
    ),
]
KernelOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="RELEASE",
        help="Given twice: trials on kernels whose releases begin with these, against each other.",
    ),
]
MetricOption = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME", help="Compare this metric instead of the headline ones. Repeatable."),
]
DifferingOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="FACT",
        help="Allow FACT to differ: a fact (governor), a group of facts (kernel, cpu, memory, host, settings, images, "
        "device, tools, study) or 'machine' (all of a machine but kernel and settings). Repeatable.",
    ),
]
ForceOption = Annotated[
    bool,
    typer.Option(
        "--force", help="Compare despite unlike conditions; the differences are listed above the table."
    ),
]
SlowerOption = Annotated[
    str | None,
    typer.Option(
        "--fail-if-slower",
        metavar="PERCENT",
        help="Exit with 10 if a figure of B is shown to be worse, and measured to be so by at least this much.",
    ),
]
DifferentOption = Annotated[
    bool, typer.Option("--fail-if-different", help="Exit with 10 if any figure is shown to differ.")
]
UnsureOption = Annotated[
    bool,
    typer.Option(
        "--fail-if-unsure",
        help="Exit with 11 if trials are too few or too noisy to rule out what the two options above test.",
    ),
]
