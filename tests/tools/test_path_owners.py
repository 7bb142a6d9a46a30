"""Tests of directories in which root measures, with real owners and modes: none where others could exchange files."""

from __future__ import annotations

import errno
import grp
import os
import pwd
import struct
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests import fuse, idmapped

from fslab import plugins, safe_output
from fslab.api import crash, replications
from fslab.campaign import cleanup
from fslab.campaign.trial_loop import new_id
from fslab.campaign.undo_journal import CampaignJournal
from fslab.cell import MachineSpec
from fslab.cli import report
from fslab.crash.trial_request import CrashRequest
from fslab.errors import FslabError, PluginError, UnsafeError, UnsupportedError
from fslab.fleet import agent
from fslab.machine.kinds import REGISTRY as MACHINES
from fslab.machine.kinds import Boot
from fslab.report.figures import paper as figures
from fslab.storage.media import REGISTRY as MEDIA
from fslab.store.store import Store
from fslab.system import files, memory, mountinfo, mounts, path_owners, path_walk, paths, proc, syscalls

NOBODY = 65534
USERS = 100
ANY = 0xFFFFFFFF  # in an ACL, the id of what has none

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="gives files to others")


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """Return a directory of the current user, below another one."""
    made = tmp_path / "above/data"
    made.mkdir(parents=True)
    for each in (made, made.parent):
        each.chmod(0o755)
    return made


def refused(directory: Path) -> str:
    """Check that the media with a path refuse it, before and in a trial, and return the message."""
    said = set()
    for kind in ("directory", "loop"):
        medium = MEDIA.get(kind)
        options = medium.parse_options({"path": str(directory)})
        with cleanup.opened_workspace(new_id(), frozenset()) as workspace, ExitStack() as undo:
            with pytest.raises(UnsafeError) as before:
                medium.check(options, workspace, disks=1)
            with pytest.raises(UnsafeError):
                medium.provide(options, workspace, "m", undo)
        said.add(str(before.value))
    assert list(directory.iterdir()) == []
    (message,) = said
    return message


@pytest.mark.parametrize("above", [False, True])
def test_one_of_another_user_is_used_only_where_they_called_sudo(
    above: bool, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.chown(directory.parent if above else directory, NOBODY, -1)
    assert f"belongs to user {NOBODY}" in refused(directory)
    link = directory.parent.parent / "link"
    link.symlink_to(directory)
    assert f"belongs to user {NOBODY}" in refused(link)
    monkeypatch.setenv("SUDO_UID", "1000")
    assert f"belongs to user {NOBODY}" in refused(directory)
    monkeypatch.setenv("SUDO_UID", str(NOBODY))
    path_owners.check_closed(directory)


@pytest.mark.parametrize("above", [False, True])
def test_where_others_can_write_only_with_the_sticky_bit(above: bool, directory: Path) -> None:
    place = directory.parent if above else directory
    place.chmod(0o757)
    assert f"other users can write to {place}" in refused(directory)
    place.chmod(0o1777)
    path_owners.check_closed(directory)


def acl(place: Path, *entries: tuple[int, int, int], kind: str = "access") -> None:
    """Set a POSIX ACL: these entries, and those that each ACL must have. They are tag, permissions and id."""
    every = [(tag, permissions, ANY) for tag, permissions in ((0x01, 7), (0x04, 5), (0x20, 5))]
    every = [each for each in every if each[0] not in {tag for tag, _, _ in entries}]
    packed = [struct.pack("<HHI", *each) for each in sorted([*every, *entries])]
    os.setxattr(place, f"system.posix_acl_{kind}", struct.pack("<I", 2) + b"".join(packed))


@pytest.mark.parametrize("above", [False, True])
@pytest.mark.parametrize(
    ("entry", "mask", "said"),
    [
        ((0x02, 7, NOBODY), 7, f"its ACL allows user {NOBODY}"),
        ((0x08, 7, USERS), 7, f"its ACL allows group {USERS}"),
        ((0x02, 7, NOBODY), 5, None),  # the mask decides
        ((0x02, 5, NOBODY), 7, None),
        ((0x02, 7, 0), 7, None),
    ],
)
def test_an_acl_decides_who_can_write(
    above: bool, entry: tuple[int, int, int], mask: int, said: str | None, directory: Path
) -> None:
    """The mode shows only the mask of an ACL, as the rights of the group."""
    acl(directory.parent if above else directory, entry, (0x10, mask, ANY))
    if said is None:
        path_owners.check_closed(directory)
    else:
        assert said in refused(directory)


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ((0x02, 7, NOBODY), f"its ACL allows user {NOBODY}"), ((0x08, 2, USERS), f"its ACL allows group {USERS}"),
        ((0x20, 2, ANY), "its ACL allows all"), ((0x04, 7, ANY), None), ((0x02, 5, NOBODY), None), ((0x02, 7, 0), None),
    ],
)  # fmt: skip
def test_a_default_acl_decides_who_can_write_to_what_is_made(
    entry: tuple[int, int, int], said: str | None, directory: Path
) -> None:
    acl(directory, entry, (0x10, 7, ANY), kind="default")
    if said is None:
        path_owners.check_closed(directory)
        return
    assert f"write to what is made in {directory}: {said}" in refused(directory)
    with pytest.raises(UnsafeError, match="by default"):
        path_owners.check_closed(directory / "new")
    (made := directory / "made").mkdir(mode=0o777)
    with pytest.raises(UnsafeError, match="other users can write to"):
        path_owners.check_closed(made)


def test_each_link_on_the_way_counts(directory: Path) -> None:
    """Another user's directory in which a link lies decides where the path leads, although both ends are root's."""
    theirs = directory.parent / "theirs"
    theirs.mkdir()
    (theirs / "link").symlink_to(directory)
    (directory.parent / "first").symlink_to("theirs/link")
    path_owners.check_closed(directory.parent / "first")
    os.chown(theirs, NOBODY, -1)
    assert f"{theirs} belongs to user {NOBODY}" in refused(directory.parent / "first")
    os.chown(theirs, 0, -1)
    theirs.chmod(0o1777)
    os.chown(theirs / "link", NOBODY, -1, follow_symlinks=False)
    assert f"the link {theirs / 'link'} belongs to user {NOBODY}" in refused(directory.parent / "first")


def test_a_group_with_others_in_it_is_others(directory: Path) -> None:
    directory.chmod(0o775)
    path_owners.check_closed(directory)
    os.chown(directory, 0, USERS)
    assert "other users can write" in refused(directory)
    directory.chmod(0o755)
    path_owners.check_closed(directory)


@pytest.mark.parametrize("listed", [["gone", "nobody"], ["nobody"], []])
def test_who_is_in_root_s_group_is_found(
    listed: list[str], directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also behind a member without an account, and a user whose own group it is, whom no list names."""
    others = [SimpleNamespace(pw_name="nobody", pw_uid=NOBODY, pw_gid=USERS if listed else 0)]
    monkeypatch.setattr(pwd, "getpwall", lambda: others)
    monkeypatch.setattr(grp, "getgrgid", lambda _: SimpleNamespace(gr_mem=listed))
    path_owners.check_closed(directory)
    directory.chmod(0o775)
    assert "its group is 0, which has the members nobody" in refused(directory)


def test_a_user_s_private_group_has_the_user_s_name_and_perhaps_another_number(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    alice = SimpleNamespace(pw_name="alice", pw_uid=1001, pw_gid=1002)
    monkeypatch.setattr(pwd, "getpwall", lambda: [alice])
    monkeypatch.setattr(pwd, "getpwuid", lambda _: alice)
    monkeypatch.setattr(grp, "getgrgid", lambda _: SimpleNamespace(gr_name="alice", gr_mem=[]))
    monkeypatch.setenv("SUDO_UID", "1001")
    os.chown(directory, 1001, 1002)
    directory.chmod(0o775)
    path_owners.check_closed(directory)
    monkeypatch.setattr(grp, "getgrgid", lambda _: SimpleNamespace(gr_name="domain users", gr_mem=[]))
    assert "its group is 1002" in refused(directory)


def test_accounts_of_root_s_group_as_which_nothing_runs_are_no_others(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fedora, Alpine and others have them."""
    names = ("sync", "shutdown", "halt", "operator")
    accounts = [SimpleNamespace(pw_name=name, pw_uid=5 + at, pw_gid=0) for at, name in enumerate(names)]
    monkeypatch.setattr(pwd, "getpwall", lambda: accounts)
    monkeypatch.setattr(grp, "getgrgid", lambda _: SimpleNamespace(gr_mem=["root"]))
    directory.chmod(0o775)
    path_owners.check_closed(directory)


def test_an_account_of_that_name_counts_in_other_groups(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    account = SimpleNamespace(pw_name="operator", pw_uid=1002, pw_gid=1002)
    monkeypatch.setattr(pwd, "getpwall", lambda: [account])
    monkeypatch.setattr(grp, "getgrgid", lambda _: SimpleNamespace(gr_name="operator", gr_mem=[]))
    os.chown(directory, -1, 1002)
    directory.chmod(0o775)
    found = path_owners.stranger_on_the_way(directory, sticky=False, groups=path_owners.Groups.WITHOUT_OTHERS)
    assert found is not None
    assert "its group is 1002" in found


def test_what_a_file_system_calls_missing_is_not_taken_for_safe(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A FUSE server of another user answers as it likes, also when it is asked what it is."""

    def missing(_: int) -> int:
        raise FileNotFoundError(errno.ENOENT, "No such file or directory")

    monkeypatch.setattr(syscalls, "filesystem_type", missing)
    with pytest.raises(UnsafeError, match="it is not known who can write to /"):
        path_owners.check_closed(directory)


def test_a_whole_path_is_judged_without_a_current_directory(directory: Path) -> None:
    directory.chmod(0o777)
    script = (
        "import os, sys, tempfile; from pathlib import Path; from fslab.system import path_owners; "
        "gone = tempfile.mkdtemp(); os.chdir(gone); os.rmdir(gone); "
        "print(path_owners.stranger_on_the_way(Path(sys.argv[1])))"
    )
    assert "other users can write" in proc.run([sys.executable, "-c", script, str(directory)]).stdout


@pytest.mark.parametrize("linked", [False, True])
def test_what_is_judged_is_what_was_reached(linked: bool, tmp_path: Path) -> None:
    """Whenever its owner exchanges their directory for a link to one of root's, or the link for the directory: after
    each call of a function in C, such as a system call."""
    shared = tmp_path / "shared"
    (theirs := shared / "theirs").mkdir(parents=True)
    (link := shared / "link").symlink_to("/usr")
    for place in (theirs, link):
        os.chown(place, NOBODY, -1, follow_symlinks=False)
    for place in (tmp_path, shared):
        place.chmod(0o1777)
    calls = 0

    def exchange(_frame: object, event: str, _argument: object) -> None:
        nonlocal calls
        calls += event == "c_return"
        if event == "c_return" and calls == at:
            syscalls.rename(theirs, link, syscalls.Rename.EXCHANGE)

    at, said = 0, set()
    while calls >= at:
        if theirs.is_symlink() is not linked:
            syscalls.rename(theirs, link, syscalls.Rename.EXCHANGE)
        at, calls = at + 1, 0
        sys.setprofile(exchange)
        try:
            said.add(path_owners.stranger_on_the_way(theirs / "new"))
        finally:
            sys.setprofile(None)
    assert said == {f"{theirs} belongs to user {NOBODY}", f"the link {theirs} belongs to user {NOBODY}"}


def test_links_of_proc_lead_where_their_text_does_not_say(directory: Path) -> None:
    """Such as into another mount namespace, in which another user mounts what they like."""
    with files.opened(directory) as descriptor:
        for place in (Path("/proc/self/root", *directory.parts[1:]), Path(f"/proc/self/fd/{descriptor}")):
            with pytest.raises(UnsafeError, match="it is not known who can write to /proc/"):
                path_owners.check_closed(place)
    path_owners.check_closed(Path("/proc/self/status"))


def test_a_path_is_followed_as_the_kernel_does(directory: Path) -> None:
    for name, target in (("dot", "."), ("up", ".."), ("root", "/"), ("way", "dot/up/data")):
        (directory / name).symlink_to(target)
    (directory / "loop").symlink_to("loop")
    for path in ("", "dot", "up", "root", "way", "way/../data", "dot/./up/../above", "../data/"):
        place = Path(f"{directory}/{path}")
        descriptor = path_walk.opened(place)
        try:
            assert os.path.samestat(os.fstat(descriptor), place.stat()), path
        finally:
            os.close(descriptor)
    for path, error in (("none/x", FileNotFoundError), ("loop", OSError)):
        with pytest.raises(error):
            path_walk.opened(directory / path)


def test_the_user_of_a_fuse_file_system_says_who_its_owner_is(directory: Path) -> None:
    with fuse.mounted(directory, of=NOBODY, says=0):
        assert directory.stat().st_uid == 0
        with pytest.raises(UnsafeError, match=f"{directory} is on a FUSE file system of user {NOBODY}"):
            path_owners.check_closed(directory / "new")
    with fuse.mounted(directory, of=0, says=0):
        path_owners.check_closed(directory / "new")


def test_an_idmapped_mount_does_not_make_another_user_s_files_root_s(directory: Path) -> None:
    theirs = directory.parent / "theirs"
    theirs.mkdir()
    os.chown(theirs, NOBODY, NOBODY)
    with ExitStack() as undo:
        try:
            undo.enter_context(idmapped.mounted(theirs, directory, stored=NOBODY, shown=0))
        except OSError as error:
            pytest.skip(f"no idmapped mounts here: {error}")
        assert directory.stat().st_uid == 0
        assert f"{directory} is on an idmapped mount" in refused(directory)
        with pytest.raises(UnsafeError, match="is on an idmapped mount"):
            path_owners.check_closed(directory / "new")
    path_owners.check_closed(directory / "new")


@pytest.mark.parametrize("place", ["", "deep"])
@pytest.mark.parametrize("upper", [True, False])
def test_every_layer_of_an_overlayfs_counts(upper: bool, place: str, directory: Path, mount: Any) -> None:
    """Its directories have the owner of the uppermost layer, and what the owner of another layer puts there."""
    layers = [directory.parent / name for name in ("up", "a:b,c \\d", "work")]
    for each in layers:
        (each / "deep").mkdir(parents=True)
    up, low, work = map(str, layers)
    escaped = low.replace("\\", r"\\").replace(":", r"\:").replace(",", r"\,")
    lower = f"lowerdir={escaped}" if upper else f"lowerdir={up}:{escaped}"
    mount("overlay", directory, f"{lower},upperdir={up},workdir={work}" if upper else lower)
    path_owners.check_closed(directory / "deep")
    theirs = layers[1] / place
    os.chown(theirs, NOBODY, NOBODY)
    (theirs / "planted").symlink_to("/etc/hostname")
    assert (directory / place / "planted").is_symlink()
    with pytest.raises(UnsafeError, match=f"overlayfs with a layer that others can change.* user {NOBODY}"):
        path_owners.check_closed(directory / place)
    if place:
        path_owners.check_closed(directory)


def test_an_overlayfs_over_its_own_layer_hides_it(directory: Path, mount: Any) -> None:
    """Otherwise the look at the layer would lead to the mount itself, and not end. Also of two over each other."""
    other = directory.parent / "other"
    made = [directory.parent / name for name in ("up", "work", "up 2", "work 2")]
    for each in (other, *made):
        each.mkdir()
    up, work, up_2, work_2 = made
    mount("overlay", other, f"lowerdir={directory},upperdir={up},workdir={work}")
    mount("overlay", directory, f"lowerdir={other},upperdir={up_2},workdir={work_2}")
    path_owners.check_closed(directory / "new")
    path_owners.check_closed(other / "new")
    os.chown(up, NOBODY, NOBODY)
    with pytest.raises(UnsafeError, match=f"user {NOBODY}"):
        path_owners.check_closed(directory / "new")


def test_the_files_on_another_user_s_image_are_theirs(directory: Path, mount: Any) -> None:
    """Such as one that udisks has mounted for a user: its owner can write any link of root's into it."""
    image = directory.parent / "image"
    image.write_bytes(bytes(1 << 20))
    proc.run(["mkfs.ext2", "-q", "-F", str(image)])
    mount("ext2", directory, "loop", image)
    path_owners.check_closed(directory / "new")
    os.chown(image, NOBODY, NOBODY)
    assert directory.stat().st_uid == 0
    with pytest.raises(
        UnsafeError, match=f"{directory} is on an image that others can change: {image} belongs"
    ):
        path_owners.check_closed(directory / "new")
    os.chown(image, 0, 0)
    image.unlink()
    with pytest.raises(
        UnsafeError, match=f"{directory} is on an image that others can change: who can is unknown"
    ):
        path_owners.check_closed(directory / "new")


def test_the_images_below_volumes_and_parts_of_loop_devices_are_found(tmp_path: Path) -> None:
    """As of LUKS on a part of an image, which a user can open with udisks."""
    for name, image in (("loop0", "/a/one"), ("loop1", "/a/two")):
        (tmp_path / name / "loop").mkdir(parents=True)
        (tmp_path / name / "loop/backing_file").write_text(f"{image}\n")
    (part := tmp_path / "loop0/loop0p1").mkdir()
    (part / "partition").write_text("1\n")
    for name, below in (("md0", [part, tmp_path / "loop1"]), ("dm-0", [tmp_path / "md0"]), ("sda", [])):
        (tmp_path / name / "slaves").mkdir(parents=True)
        for each in below:
            (tmp_path / name / "slaves" / each.name).symlink_to(each)
    found = {name: {*mountinfo._images(tmp_path / name)} for name in ("dm-0", "loop1", "sda", "none")}
    both = {Path("/a/one"), Path("/a/two")}
    assert found == {"dm-0": both, "loop1": {Path("/a/two")}, "sda": set(), "none": set()}


@pytest.fixture
def mount() -> Iterator[Callable[[str, Path, str, Path | str], None]]:
    """Yield a function that mounts a file system, until the test ends. ``source``: its device, if it has one."""
    with ExitStack() as undo:

        def mounted(filesystem: str, target: Path, options: str, source: Path | str = "fslab-test") -> None:
            proc.run(["mount", "-t", filesystem, "-o", options, str(source), str(target)])
            undo.callback(mounts.unmount, target, devices=None)

        yield mounted


class TestCode:
    """What root runs: plug-ins, and the kernels and modules of guests that a study or a user names."""

    KINDS = ("uml", "qemu")

    def made(self, place: Path) -> None:
        for name, text in (
            ("linux", "#!/bin/sh\n"), ("modules/modules.dep", "kernel/a.ko:\n"), ("modules/kernel/a.ko", ""),
            ("odd.py", ""), ("odd-1.dist-info/METADATA", "Metadata-Version: 2.1\nName: odd\nVersion: 1\n"),
            ("odd-1.dist-info/entry_points.txt", "[fslab.odd]\nodd = odd\n"),
        ):  # fmt: skip
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            (place / name).write_text(text)
        (place / "linux").chmod(0o755)

    def needs(self, kind: str, place: Path, *names: str) -> list[str]:
        """Return what is changeable of the code in a directory, of which these keys are named."""
        paths = {"kernel": str(place / "linux"), "modules": str(place / "modules")}
        spec = MachineSpec(type=kind, **{name: paths[name] for name in names})
        found = [each.what for each in MACHINES.get(kind).missing(spec)]
        return [each for each in found if each.startswith("root does not boot what others can change: ")]

    @pytest.fixture(params=["idmapped", "overlayfs", "image"])
    def shown(self, request: pytest.FixtureRequest, directory: Path, mount: Any) -> Iterator[Path]:
        """Yield a directory in which all seems to be root's, and that another user can change."""
        (theirs := directory.parent / "theirs").mkdir()
        (own := directory.parent / "own").mkdir()
        with ExitStack() as undo:
            match request.param:
                case "idmapped":
                    self.made(theirs)
                    proc.run(["chown", "-R", str(NOBODY), str(theirs)])
                    try:
                        undo.enter_context(idmapped.mounted(theirs, directory, stored=NOBODY, shown=0))
                    except OSError as error:
                        pytest.skip(f"no idmapped mounts here: {error}")
                case "overlayfs":
                    self.made(theirs)
                    os.chown(theirs, NOBODY, NOBODY)
                    mount("overlay", directory, f"lowerdir={own}:{theirs}")
                case "image":
                    image = own / "image"
                    image.write_bytes(bytes(1 << 20))
                    proc.run(["mkfs.ext2", "-q", "-F", str(image)])
                    mount("ext2", directory, "loop", image)
                    self.made(directory)
                    os.chown(image, NOBODY, NOBODY)
            assert {each.stat().st_uid for each in (directory, *directory.rglob("*"))} == {0}
            yield directory

    @pytest.mark.parametrize("linked", [False, True])
    def test_on_a_mount_that_others_can_change(
        self, linked: bool, shown: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        place = shown
        if linked:
            (place := shown.parent / "link").symlink_to(shown)
        for kind in self.KINDS:
            for named in ("kernel", "modules"):
                assert self.needs(kind, place, named) != [], (kind, named)
        monkeypatch.syspath_prepend(place)
        plugins._installed.cache_clear()
        try:
            (plugin,) = plugins.of_group("fslab.odd")
        finally:
            plugins._installed.cache_clear()
        with pytest.raises(PluginError, match="plug-in not loaded: "):
            plugin.load()
        assert "odd" not in sys.modules

    @pytest.mark.parametrize("kind", KINDS)
    @pytest.mark.parametrize("what", ["linux", ".", "modules", "modules/modules.dep", "modules/kernel/a.ko"])
    def test_of_another_user_is_not_booted_although_it_was_planned(
        self, what: str, kind: str, directory: Path
    ) -> None:
        self.made(directory)
        assert self.needs(kind, directory, "kernel", "modules") == []
        os.chown(directory / what, NOBODY, -1)
        spec = MachineSpec(type=kind, kernel=str(directory / "linux"), modules=str(directory / "modules"))
        machine = MACHINES.get(kind)
        if machine.missing(spec):
            pytest.skip(f"no guests of this kind here: {machine.missing(spec)}")
        boot = Boot(spec=spec, directory=directory, mark=("a", "b"), init=["/bin/true"])
        with pytest.raises(UnsupportedError, match=f"others can change: .* belongs to user {NOBODY}"):
            machine.boot(boot)
        spec = spec.model_copy(update={"memory": "512m"})
        assert machine.missing(spec) != ()
        os.chown(directory / what, 0, -1)
        assert machine.missing(spec) == (), "an agent of a fleet asks again"


def test_what_root_may_not_look_at_is_not_taken_for_missing(directory: Path) -> None:
    """As a FUSE file system without allow_other, whose user can unmount it a moment later."""
    unreached = directory / ("n" * 256)
    with pytest.raises(UnsafeError, match=r"it is not known who can write to .*File name too long"):
        path_owners.check_closed(unreached)


@pytest.mark.parametrize(
    ("variable", "value"), [("SUDO_UID", str(NOBODY)), ("PKEXEC_UID", str(NOBODY)), ("DOAS_USER", "nobody")]
)
def test_who_became_root_is_trusted(
    variable: str, value: str, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.chown(directory, NOBODY, -1)
    assert f"belongs to user {NOBODY}" in refused(directory)
    monkeypatch.setenv(variable, value)
    path_owners.check_closed(directory)
    for other in ("²", "no such user"):
        monkeypatch.setenv(variable, other)
        assert f"belongs to user {NOBODY}" in refused(directory)


def test_other_users_measure_where_they_may(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.chown(directory, NOBODY, -1)
    monkeypatch.setattr(os, "geteuid", lambda: NOBODY - 1)
    path_owners.check_closed(directory)


class TestDirectoriesOfOurOwn:
    """Root works in no directory that another user can exchange, whichever variable or option names it."""

    @pytest.fixture
    def theirs(self, tmp_path: Path) -> Path:
        (made := tmp_path / "theirs/inner").mkdir(parents=True)
        os.chown(made.parent, NOBODY, -1)
        return made

    @pytest.mark.parametrize(
        ("variable", "uses"),
        [
            (paths.RUNTIME, [paths.runtime, paths.fleet]),
            ("XDG_STATE_HOME", [paths.state, paths.images, paths.recordings, cleanup.clean_all]),
            ("XDG_CACHE_HOME", [paths.cache]),
            ("XDG_DATA_HOME", [paths.data, Store.open]),
            ("HOME", [paths.state, paths.cache, paths.data]),
        ],
    )
    def test_of_the_environment(
        self, variable: str, uses: list[Callable[[], object]], theirs: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for name in ("XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME", paths.RUNTIME):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv(variable, str(theirs))
        for use in uses:
            with pytest.raises(UnsafeError, match=f"{theirs.parent} belongs to user {NOBODY}") as refused:
                use()
            assert f"another '{variable}'" in str(refused.value)
        assert list(theirs.iterdir()) == []

    def test_that_somebody_makes_first(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """In one such as /tmp, in which anybody can make the directory that fslab is about to make."""
        tmp_path.chmod(0o1777)
        for name in ("XDG_STATE_HOME", paths.RUNTIME):
            monkeypatch.setenv(name, str(tmp_path))
        assert (paths.state(), paths.runtime()) == (tmp_path / "fslab", tmp_path / "fslab")
        theirs = tmp_path / "fslab"
        theirs.mkdir(mode=0o755)
        os.chown(theirs, NOBODY, -1)
        made: tuple[Callable[[], object], ...] = (
            paths.state,
            partial(files.make_directories, theirs),
            partial(files.make_directories, theirs / "journal", 0o700),
            partial(files.own_directory, theirs / "campaign", 0o700),
            partial(agent.only_one(theirs / "agent").__enter__),
            partial(CampaignJournal, "c", theirs / "journal"),
        )
        for make in made:
            with pytest.raises(UnsafeError, match=f"{theirs} belongs to user {NOBODY}"):
                make()
        assert not [each for each in theirs.rglob("*") if each.is_file()]

    def test_for_temporary_files(self, theirs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("TMPDIR", str(theirs))
        monkeypatch.setattr(tempfile, "tempdir", None)
        with pytest.raises(UnsafeError, match="another 'TMPDIR'"):
            paths.temporary()
        with pytest.raises(UnsafeError, match="another '--scratch'"):
            paths.temporary(theirs)
        monkeypatch.setenv("HOME", str(theirs))  # tools read settings there
        assert not {"HOME", "TMPDIR"} & proc.environment().keys()
        assert theirs not in memory._places()
        theirs.parent.chmod(0o755)
        os.chown(theirs.parent, 0, -1)
        assert paths.temporary() == theirs
        assert proc.environment()["TMPDIR"] == str(theirs)

    @pytest.mark.parametrize(("mode", "used"), [(0o700, True), (0o755, True), (0o1777, False)])
    def test_for_settings_of_tools(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: int, used: bool
    ) -> None:
        """In a HOME such as /tmp, anybody can put a .dpkg.cfg that names a program."""
        (home := tmp_path / "home").mkdir()
        home.chmod(mode)
        for name in ("HOME", "TMPDIR"):
            monkeypatch.setenv(name, str(home))
        assert ("HOME" in proc.environment(), "TMPDIR" in proc.environment()) == (used, True)

    def test_for_reports(self, theirs: Path, capfd: pytest.CaptureFixture[str]) -> None:
        (theirs / "link").symlink_to("/dev/stdout")
        os.mkfifo(theirs / "pipe")  # they can put a link there before it is opened
        for name in ("report.html", "deeper/report.html", "pipe", "link"):
            with pytest.raises(UnsafeError, match="another '--output'"):
                safe_output.replace(theirs / name, "text")
        new = theirs / "new"
        before_a_campaign = partial(report.check_name, theirs / "report.html")
        into = (partial(make, (), new) for make in (figures.write, replications.write))
        for make in (before_a_campaign, partial(safe_output.make_directory, new), *into):
            with pytest.raises(UnsafeError, match="another '--output'"):
                make()
        with pytest.raises(UnsafeError, match="another '--recordings'"):
            crash.crash_test(CrashRequest(directory=theirs, recordings=theirs))
        with pytest.raises(UnsafeError, match="another 'DIRECTORY'"):
            crash._ground(new)
        assert {each.name for each in theirs.iterdir()} == {"link", "pipe"}
        safe_output.replace(Path("/dev/stdout"), "to a stream\n")
        assert capfd.readouterr().out == "to a stream\n"

    def test_for_reports_in_memory(self, tmp_path: Path) -> None:
        with tempfile.TemporaryDirectory(dir="/dev/shm") as made:  # below /dev, but no device
            safe_output.replace(Path(made, "new"), "text")
            assert Path(made, "new").read_text() == "text"
            (tmp_path / "file").write_text("mine")
            Path(made, "out").symlink_to(tmp_path)
            os.chown(made, NOBODY, NOBODY)
            with pytest.raises(UnsafeError, match="another '--output'"):
                safe_output.replace(Path(made, "out/file"), "text")
            assert (tmp_path / "file").read_text() == "mine"


def test_a_failed_cleanup_is_told_and_not_a_traceback(
    own_directories: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(_: str) -> None:
        raise OSError(errno.ESTALE, "Stale file handle", "/x")

    monkeypatch.setattr(cleanup, "UNDO", {**cleanup.UNDO, "directory": gone})
    with (
        pytest.raises(FslabError, match=r"(?s)Stale file handle.*fslab clean"),
        cleanup.opened_workspace("c", frozenset()),
    ):
        pass
    monkeypatch.undo()
