"""Debian, Ubuntu and their derivatives."""

from fslab.system.distributions import Distribution


class Debian(Distribution):
    """Uses the names in ``tools.Tool.package``."""

    ids = frozenset({"debian", "ubuntu"})
    install = "apt-get install --no-install-recommends"
