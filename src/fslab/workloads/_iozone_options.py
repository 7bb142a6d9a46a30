"""The options of iozone(1) for a study's parameters. Pure."""

from fslab.workloads._iozone_parameters import KIB, IozoneParameters


def argv(parameters: IozoneParameters) -> tuple[str, ...]:
    switches = {
        "-e": parameters.flush, "-c": parameters.close, "-I": parameters.direct, "-o": parameters.sync,
        "-p": parameters.purge, "-+n": not parameters.retest,
    }  # fmt: skip
    values = {"-S": parameters.cache_size, "-L": parameters.cache_line}
    return (
        "iozone",
        *(switch for switch, is_on in switches.items() if is_on),
        *(word for key, value in values.items() if value is not None for word in (key, str(value))),
        *(word for group in parameters.groups for word in ("-i", str(group))),
    )


def sweep(parameters: IozoneParameters) -> tuple[str, ...]:
    """Return the options of a sweep, always with the record lengths.

    Without them, IOzone skips records below 64k for files of 32m and more.
    """
    sizes = [size // KIB for size, _ in parameters.points]
    records = [record // KIB for _, record in parameters.points]
    fixed = ("-r", f"{records[0]}k") if parameters.record else ()
    ranged = () if parameters.record else ("-y", f"{min(records)}k", "-q", f"{max(records)}k")
    return ("-a", "-n", f"{min(sizes)}k", "-g", f"{max(sizes)}k", *fixed, *ranged)
