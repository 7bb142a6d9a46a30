#!/bin/sh
# Installs this machine's wheel into a clean virtual environment, without Rust on PATH, and tries it:
# packaging/wheel-test.sh UV DIRECTORY. What it makes lies in a temporary directory and is gone afterwards.
set -eu
uv=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
directory=$(cd "$2" && pwd)
wheel=$(ls -t "$directory"/fslab-*manylinux*"$(uname -m)".whl | head -n 1)
work=$(mktemp -d "${TMPDIR:-/tmp}/fslab wheel.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

python3 -m zipfile -l "$wheel" >"$work/contents"
for part in fslab/studies/quick.yaml fslab/studies/iozone-ssd-hdd.claims.yaml templates/page.html.j2 xstate.c  \
    scripts/fslab scripts/fslab-engine; do
    grep -qF "$part" "$work/contents" || {
        echo "$part is missing in $wheel" >&2
        exit 1
    }
done

"$uv" venv --quiet --python "$(command -v python3)" "$work/venv"
VIRTUAL_ENV="$work/venv" "$uv" pip install --quiet "$wheel"
cd "$work"
clean() { # command: as a new user's shell would run it, without cargo, this source tree and settings
    env -i HOME="$work" PATH="$work/venv/bin:/usr/bin:/bin" XDG_RUNTIME_DIR="$work" "$@"
}
clean sh -c '! command -v cargo && ! command -v rustc' >/dev/null || {
    echo "Rust is in /usr/bin: this test needs a machine without Rust" >&2
    exit 1
}
clean fslab --version
clean fslab-engine --version
clean fslab list >/dev/null
clean fslab plan quick >/dev/null
clean fslab doctor quick || [ $? -lt 100 ]
clean fslab-engine small-files "$work" --files 10 >/dev/null
echo "installed and tested: $(basename "$wheel")"
