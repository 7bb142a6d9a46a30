"""``fslab crash``: the commands that trials of crash workloads run, and the replay of crash states.

Loaded when one of them is used: their options are the fields of requests.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fslab.api import crash, crash_states
from fslab.cli.common import JsonOption, print_json, say
from fslab.cli.option_groups import App
from fslab.crash.trial_request import CrashRequest, FaultRequest, RecoveryRequest
from fslab.errors import MountError

app = App(rich_markup_mode=None, add_completion=False)


@app.command("test", short_help="Test crash consistency in a directory on a virtual disk.")
def test(request: CrashRequest) -> None:
    """Run short sequences of operations, make states that a power cut could leave, and check each; prints JSON.

    A broken promise is a loss that POSIX or the file system's documentation rules out. Its recording is kept for:
    fslab crash replay. Needs root.
    """
    _show(crash.crash_test(request))


@app.command("recover", short_help="Time the recovery after a power cut of a virtual disk.")
def recover(request: RecoveryRequest) -> None:
    """Write files, sync the last, cut power, and time mount, the first read, the first write and a check; prints JSON.

    The file system is unmounted and mounted again several times. If another process uses it, the command fails
    before it writes a file. Needs root.
    """
    _show(crash.crash_recovery(request))


@app.command("fault", short_help="Test a file system on a virtual disk that fails.")
def fault(request: FaultRequest) -> None:
    """Read or write eight files while the disk fails, mount again, and count errors that were reported, data that was
    silently wrong, and data that was right; prints JSON.

    The file system is unmounted and mounted again several times. If another process uses it, the command fails
    before it writes a file. Needs root.
    """
    _show(crash.fault_test(request))


@app.command("run", short_help="Run a test, recover or fault that a file describes.")
def run(file: Path) -> None:
    """Run what a file says: its key "do" is the name of the command; prints JSON. Needs root.

    That the file system cannot be mounted afterwards is in what it prints ("not_mounted"), and no error.

    Parameters:
        file: Its arguments and options as JSON, as a trial hands them over.
    """
    print_json(crash.run_request(file))


@app.command("replay", short_help="Make the image of a crash state again.")
def replay(
    name: str,
    *,
    output: Path | None = None,
    kernel: str | None = None,
    modules: str | None = None,
    as_json: JsonOption = False,
) -> None:
    """Make the image of a crash state, as it is before the first mount, and check a copy of it. Needs root, except for
    a recording of a guest, whose states are made and checked in one.

    Parameters:
        name ID: RECORDING.STATE, as printed with a finding.
        output: New file for the image; default: ID.img in this directory.
        kernel: Kernel of the guest; default: the installed one.
        modules: Directory with the modules of that kernel.
    """
    image = (output or Path(f"{name}.img")).absolute()
    told = crash_states.crash_state(name, image, kernel=kernel, modules=modules)
    if as_json:
        print_json(told)
        return
    say(f"{told['image']}: {told['filesystem']}")
    if (recorded := told.get("recorded_kernel")) and recorded != told["kernel"]:
        say(f"recorded with kernel {recorded}, and checked with kernel {told['kernel']}")
    for finding in told["findings"]:
        say(_paragraph(finding))


@app.command("list", short_help="List the stored recordings.")
def listing(*, as_json: JsonOption = False) -> None:
    """List the stored recordings of broken promises."""
    found = crash_states.crash_recordings()
    if as_json:
        print_json(found)
        return
    if not found:
        say("no recording of a broken promise is stored", err=True)
    for each in found:
        known = each["filesystem"] is not None
        text = f"{each['filesystem']}  runs: {each['runs']}, the first: {'; '.join(each['first'] or ())}"
        say(f"{each['id']}  {text if known else 'damaged'}")


def _show(document: dict[str, Any]) -> None:
    """Print a document. MountError afterwards if the file system is not mounted any more: the states were judged."""
    print_json(document)
    if (refused := document.get(crash.NOT_MOUNTED)) is not None:
        raise MountError(f"the file system cannot be mounted again after the test: {refused}")


def _paragraph(finding: dict[str, Any]) -> str:
    verdict = "broken promise" if finding["broken"] else "loss allowed"
    steps = f" after: {'; '.join(finding['sequence'])}" if finding["sequence"] else ""
    return f"{finding['kind']} ({verdict}){steps}\n    {finding['detail']}\n    {finding['source']}"
