"""Debian, Ubuntu and their derivatives."""

from fslab.system.distributions import Distribution


class Debian(Distribution):
    """Its names are those that tools give."""

    ids = frozenset({"debian", "ubuntu"})
    install = "apt-get install --no-install-recommends"
