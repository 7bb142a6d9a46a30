"""Tests of the list of what studies can use."""

from __future__ import annotations

import pytest

from fslab.api import capabilities
from fslab.cli.listing import Kind
from fslab.errors import UsageError


def test_the_command_line_offers_every_kind() -> None:
    assert [kind.value for kind in Kind] == list(capabilities.KINDS)


@pytest.mark.parametrize("kind", capabilities.KINDS)
def test_every_kind_has_entries_with_a_summary(kind: str) -> None:
    found = capabilities.entries(kind)
    assert found
    assert all(each["name"] and each["summary"] and each["from"] for each in found)


def test_an_unknown_kind_names_the_similar_one() -> None:
    with pytest.raises(UsageError, match="no kind 'medium'") as error:
        capabilities.entries("medium")
    assert "media" in (error.value.hint or "")


def test_file_systems_show_what_a_study_may_write() -> None:
    options = {each["name"]: each["options"] for each in capabilities.entries("filesystems")}
    assert "-b VALUE" in options["ext4"]["mkfs_options"]
    assert "data=journal|ordered|writeback" in options["ext4"]["mount_options"]
    assert "[no]acl" in options["ext2"]["mount_options"]
    assert "noatime" not in options["ext4"]["mount_options"], "what all have is not repeated"
