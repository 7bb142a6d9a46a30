"""Installs the programs that fslab-engine is compared with. Does not measure anything.

Cargo programs are installed into a separate directory. Debian packages are installed only as root.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

APT = {
    "rg": "ripgrep",
    "jdupes": "jdupes",
    "rsync": "rsync",
    "fio": "fio",
    "bonnie++": "bonnie++",
    "fs_mark": "fsmark",
    "cc": "gcc",
}
CARGO = {
    "dust": ["du-dust"],
    "dua": ["dua-cli", "--no-default-features"],
    "diskus": ["diskus"],
    "fclones": ["fclones"],
}


def install(build: Path) -> None:
    """Install missing programs and extend PATH. Comparisons skip programs that cannot be installed."""
    packages = [package for program, package in APT.items() if shutil.which(program) is None]
    if packages and os.geteuid() == 0 and shutil.which("apt-get"):
        _try(["apt-get", "install", "-y", "-qq", *packages])
    root = build / "peers"
    for program, crate in CARGO.items():
        if not (root / "bin" / program).exists() and shutil.which("cargo"):
            target = str(build / "peers-build")
            _try(
                [
                    "cargo",
                    "install",
                    "--quiet",
                    "--locked",
                    "--root",
                    str(root),
                    "--target-dir",
                    target,
                    *crate,
                ]
            )
    os.environ["PATH"] = f"{root / 'bin'}{os.pathsep}{os.environ['PATH']}{os.pathsep}/usr/sbin"


def compile_bare(source: Path, build: Path) -> Path | None:
    """Compile the bare C loop and return its path; None if this fails, such as without a compiler."""
    build.mkdir(parents=True, exist_ok=True)
    target = build / "bare"
    done = _try(["cc", "-O2", "-pthread", str(source), "-o", str(target)])
    return target if done else None


def _try(argv: list[str]) -> bool:
    print("+", " ".join(argv), flush=True)
    try:
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=False)
    except FileNotFoundError:
        return False
    return done.returncode == 0
