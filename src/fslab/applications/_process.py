"""The process of a measured application: ``python -m fslab.applications._process prepare|drive JSON``.

It is a process of its own, so that the trial can watch and end it. Prints a document of figures. What it starts ends
with it.
"""

import gc
import json
import os
import sys
from pathlib import Path

from fslab.applications import REGISTRY, Driven, DriveRequest
from fslab.errors import FslabError, InterruptedBySignal
from fslab.system import signals


def main(what: str, text: str) -> int:
    """Prepare or drive an application. Return the exit status."""
    signals.install()
    os.chdir("/")  # so that the file system under test can be unmounted
    request = json.loads(text)
    application = REGISTRY.get(request["application"])
    drive = DriveRequest(
        directory=Path(request["directory"]),
        scratch=Path(request["scratch"]),
        load=application.Load.model_validate(request["load"]),
        run_s=request["run_s"],
        seed=request["seed"],
        turns=request["turns"],
    )
    try:
        if what == "prepare":
            drive.directory.mkdir()
            application.prepare(drive)
        else:
            done = application.drive(drive)
            if request["operations"] is not None and isinstance(done, Driven):
                done.log(drive.scratch / request["operations"])
            print(json.dumps(done.document()))
    except FslabError as error:  # the reason: a command line before it could take all room that a message has
        sys.stderr.write(f"{error.without_place}\n")
        return 1
    except OSError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    except InterruptedBySignal as error:
        return error.exit_code
    return 0


if __name__ == "__main__":
    code = main(*sys.argv[1:])
    gc.freeze()  # as fslab itself
    sys.exit(code)
