"""The arguments and options of ``fslab compare``. Prints nothing."""

from typing import Annotated

import typer

SIDE = (
    "A campaign (id, its beginning, name, 'last', 'last~1'), or a JSON file of fslab export; or several, separated by "
    "commas: then each campaign is one value, its median."
)
FirstArgument = Annotated[
    str | None,
    typer.Argument(metavar="[A]", help=f"{SIDE} Default: 'last~1', or 'last' if stacks are named."),
]
SecondArgument = Annotated[
    str | None,
    typer.Argument(metavar="[B]", help="The same; ratios are B ÷ A. Default: 'last'."),
]
StackOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME",
        help="Only this stack (its name or file system). Given twice: compare the first one in A with the second one "
        "in B; in A if B is not given.",
    ),
]
KernelOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="RELEASE",
        help="To be given twice: compare the trials on kernels whose releases begin with the first RELEASE and with "
        "the second.",
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
        help="Exit with 10 if a figure of B is significantly worse, and measured to be worse by PERCENT or more.",
    ),
]
DifferentOption = Annotated[
    bool, typer.Option("--fail-if-different", help="Exit with 10 if any figure differs significantly.")
]
UnsureOkOption = Annotated[
    bool,
    typer.Option(
        "--unsure-ok",
        help="Exit with 0, not 11, if trials are too few or too noisy to rule out what --fail-if-slower or "
        "--fail-if-different tests.",
    ),
]
