"""Scales the amounts of work of a fio job: sizes, times and numbers of requests. Pure."""

from collections.abc import Callable, Mapping

from fslab import scaling
from fslab.scaling import ScaledAmount
from fslab.workloads._fio_places import number
from fslab.workloads._fio_requests import LARGEST_OF, largest_request

_LEAST_BYTES = 4 << 20
_LEAST_REQUESTS = 16

Options = Mapping[str, str | None]


def scaled(options: Options, factor: float) -> dict[str, ScaledAmount]:
    """Return the options that change, with their new values: files of at least 16 full queues, run times of at least
    one second. A value that fslab cannot parse, such as a percentage, does not change."""
    block = largest_request(options.get(key) for key in ("bs", *LARGEST_OF))
    files = number(options, "nrfiles", 1)
    least = max(_LEAST_BYTES, _LEAST_REQUESTS * block * number(options, "iodepth", 1), files * block)

    def sized(least_bytes: int) -> Callable[[str], ScaledAmount]:
        return lambda text: scaling.size(text, factor, least_bytes=least_bytes, unit_bytes=block)

    rules: dict[str, Callable[[str], ScaledAmount]] = {
        **dict.fromkeys(("size", "io_size"), sized(least)),
        **dict.fromkeys(("offset", "offset_increment"), sized(1)),
        "filesize": lambda text: _range(text, sized(block)),
        "number_ios": lambda text: scaling.count(int(text), factor, least=_LEAST_REQUESTS),
        "runtime": lambda text: scaling.duration(text, factor),
        **dict.fromkeys(
            ("ramp_time", "startdelay"), lambda text: scaling.duration(text, factor, least_s=0.1)
        ),
    }
    found = {}
    for key, rule in rules.items():
        written = options.get(key)
        if written is None:
            continue
        try:
            found[key] = rule(written)
        except (ValueError, ArithmeticError):
            continue
    return found


def _range(text: str, size: Callable[[str], ScaledAmount]) -> ScaledAmount:
    parts = [size(part) for part in text.split("-")]
    return ScaledAmount(value="-".join(str(part.value) for part in parts), share=parts[-1].share)
