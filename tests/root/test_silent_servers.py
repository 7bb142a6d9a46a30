"""Tests of places that a user names on a mount whose server does not answer."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests import fuse

from fslab.__main__ import check_places
from fslab.errors import MountError
from fslab.storage import images
from fslab.system import mounts


@pytest.mark.parametrize("given", ["study", "--store=", "XDG_DATA_HOME"])
def test_a_place_on_a_mount_whose_server_does_not_answer_is_refused(
    given: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Asked by fslab itself, the kernel would keep the process, also from Ctrl-C, until the server answers."""
    monkeypatch.setattr(mounts, "ANSWER_S", 0.2)
    place = tmp_path / "server"
    place.mkdir()
    words = {
        "study": ["plan", str(place / "s.yaml")],
        "--store=": ["results", f"--store={place / 'x.sqlite'}"],
    }
    if given not in words:
        monkeypatch.setenv(given, str(place / "below"))
    with fuse.mounted(place, of=0, says=None):
        said = rf"lies on {place}, whose server does not answer within 0\.2 s"
        with pytest.raises(MountError, match=said):
            check_places(words.get(given, ["list", "media"]))
        with pytest.raises(MountError, match=said):
            images.existing_directory(str(place / "images"))
        monkeypatch.delenv("XDG_DATA_HOME", raising=False)
        monkeypatch.chdir("/")
        monkeypatch.setenv(
            "XDG_SESSION_TYPE", str(place).removeprefix("/")
        )  # no absolute path names no place
        check_places(["list", "media", "--no-such", ""])
