"""LUKS: a device encrypted by the kernel (dm-crypt). cryptsetup(8), cryptsetup-luksFormat(8)."""

from collections.abc import Mapping, Sequence, Set
from pathlib import Path
from typing import ClassVar, Literal

from pydantic import Field

from fslab.storage.layouts import LayoutOptions, LayoutPlan, volume_name
from fslab.storage.layouts._joined import JoinedLayout
from fslab.system import proc, sysfs
from fslab.system.tools import Tool

HEAD_BYTES = 16 << 20  # cryptsetup-luksFormat(8): of LUKS2
# The passphrase. It is public, since a disk under test needs no secret, and the same on every Linux system, so that a
# disk that was kept can be opened again.
KEY_FILE = "/proc/sys/kernel/ostype"
# A short passphrase search would only protect a secret; its cost is paid when the disk is opened, not in the run.
QUICK_KEY = ("--pbkdf", "pbkdf2", "--pbkdf-force-iterations", "1000")
# Anchored: pydantic looks for a pattern anywhere in the text.
CIPHER = r"^[a-z0-9_]+(-[a-z0-9_:]+){1,3}$"


class LuksOptions(LayoutOptions):
    """Cipher, sector size and work queues."""

    without: ClassVar[Mapping[str, str]] = {"disks": "LUKS encrypts one disk"}

    cipher: str = Field(
        "aes-xts-plain64", pattern=CIPHER, max_length=64, description="cipher, as for `cryptsetup --cipher`"
    )
    key_bits: int = Field(
        512, ge=128, le=512, multiple_of=8, description="size of the key; XTS uses half of it"
    )
    sector_size: Literal[512, 1024, 2048, 4096] | None = Field(
        None, description="bytes that are encrypted at once; default: chosen by cryptsetup for the disk"
    )
    workqueues: bool = Field(
        True,
        description="let kernel threads encrypt and decrypt; `false`: where the request is made or ends "
        "(`--perf-no_read_workqueue --perf-no_write_workqueue`, Linux 5.9)",
    )


class Luks(JoinedLayout[LuksOptions]):
    """One encrypted disk (LUKS2). Its passphrase is public: nothing on it is secret. It passes no discards on."""

    summary = "LUKS: one encrypted disk (dm-crypt)"
    tools = (Tool(program="cryptsetup", package="cryptsetup-bin"),)
    modules = ("dm_crypt",)
    least_disk_bytes = 2 * HEAD_BYTES
    undo_kind = "luks"
    encrypts = True
    Options = LuksOptions

    def usable_bytes(self, options: LuksOptions, disk_bytes: int) -> int:  # noqa: ARG002
        return max(0, disk_bytes - HEAD_BYTES)

    def plan(self, options: LuksOptions, devices: Sequence[str], campaign: str) -> LayoutPlan:
        """Return the plan: ``luksFormat`` with the campaign's name as label, and ``open``."""
        name = volume_name(campaign)
        (device,) = devices
        sector = ("--sector-size", str(options.sector_size)) if options.sector_size else ()
        kind = ("--cipher", options.cipher, "--key-size", str(options.key_bits), *sector)
        direct = () if options.workqueues else ("--perf-no_read_workqueue", "--perf-no_write_workqueue")
        opened = _command("open", "--type", "luks2", "--key-file", KEY_FILE, *direct, device, name)
        closed = _command("close", name)
        made = _command(
            "luksFormat",
            "--type",
            "luks2",
            "--label",
            name,
            *kind,
            *QUICK_KEY,
            "--key-file",
            KEY_FILE,
            device,
        )
        wiped = ("wipefs", "--all", "--quiet", device)
        return LayoutPlan(
            device=f"/dev/mapper/{name}",
            create=(wiped, made, opened),
            activate=(opened,),
            deactivate=(closed,),
            remove=(closed, wiped),
        )

    def is_joined(self, block: Path, name: str, parts: Set[str]) -> bool:  # noqa: ARG002
        return sysfs.text(block / "dm/name") == name

    def stop(self, block: Path, name: str, members: Sequence[Path]) -> None:  # noqa: ARG002
        """Stop the device, by device-mapper alone: cryptsetup waits for a disk that is dead."""
        proc.run(["dmsetup", "remove", "--force", "--retry", "--noudevsync", "--noudevrules", name])

    def name_on(self, part: Path) -> str | None:
        """Return the label of the header."""
        argv = ["blkid", "--probe", "--output", "value", "--match-tag", "LABEL", str(part)]
        return proc.run(argv, check=False).stdout.strip() or None

    def blank(self, part: Path) -> None:
        proc.run(["wipefs", "--all", "--quiet", str(part)])

    def forget(self, name: str) -> None:
        """Remove the node of the closed device, if udev does not do it."""
        proc.run(["dmsetup", "mknodes", "--noudevsync", "--noudevrules", name], check=False)


def _command(verb: str, *words: str) -> tuple[str, ...]:
    """Return a command that asks nothing, takes no lock of the machine's, and does not wait for udev."""
    return ("env", "DM_DISABLE_UDEV=1", "cryptsetup", verb, "--batch-mode", "--disable-locks", *words)
