"""Arrays of Linux software RAID: which lack disks, and which are rebuilt or checked.

Reads ``/sys/class/block/*/md`` (Documentation/admin-guide/md.rst). Levels without redundancy have no such files.
"""

from collections.abc import Mapping

from fslab.probes import Probe, ProbeFinding, Snapshot, SnapshotMoment, Target, Work
from fslab.system import sysfs

_QUIET = frozenset({"idle", "frozen"})


class MdArrays(Probe):
    """Reads the array of the layout, and those that the stack lies on, such as that of an existing directory."""

    summary = "md arrays that lack disks, are rebuilt or checked"
    moments = (SnapshotMoment.BEFORE, SnapshotMoment.FLUSHED)

    def snapshot(self, target: Target) -> Snapshot:
        """Return for each array its missing disks, all its disks, and what is done to it; nothing if there are none."""
        found = {}
        for name in dict.fromkeys((*filter(None, [target.volume]), *target.devices, *target.below)):
            md = target.sys / "class/block" / name / "md"
            if (missing := sysfs.number(md / "degraded")) is not None:
                own = name == target.volume and name not in target.devices
                found[name] = {
                    "missing": missing,
                    "disks": sysfs.text(md / "raid_disks"),
                    "action": sysfs.text(md / "sync_action"),
                    "last": sysfs.text(md / "last_sync_action"),
                    "own": own,
                }
        return found

    def derive(self, taken: Mapping[SnapshotMoment, Snapshot], work: Work) -> ProbeFinding:  # noqa: ARG002
        """Return what is wrong with the array of the layout, and with others, in words."""
        found: dict[str, dict[str, None]] = {"layout_array": {}, "arrays_below": {}}
        before, end = (taken[moment] for moment in self.moments)
        for snapshot in (end, before):
            for name, array in snapshot.items():
                told = found["layout_array" if array["own"] else "arrays_below"]
                if array["missing"] and not any(each.startswith(f"{name} lacked") for each in told):
                    told[f"{name} lacked {array['missing']} of its {array['disks']} disks"] = None
                if array["action"] and array["action"] not in _QUIET:
                    told[f"{name}: a {array['action']} was running"] = None
                elif snapshot is end and array["last"] not in {None, before.get(name, array)["last"]}:
                    told[f"{name}: a {array['last']} has run"] = None  # it began and ended meanwhile
        return ProbeFinding(values={}, texts={name: tuple(told) for name, told in found.items() if told})
