#!/bin/sh
# Builds wheels for x86-64 and aarch64 that run on any Linux with glibc 2.28 or newer: packaging/wheel.sh UV DIRECTORY [TARGET...]
# maturin and Zig (a linker with the old glibc for both processors) come from PyPI into uv's cache; rustup brings Rust's
# library for a processor that it lacks. A target that cannot be built is named, and the others are built.
set -eu
uv=$1 directory=$2
shift 2
[ $# -gt 0 ] || set -- x86_64-unknown-linux-gnu aarch64-unknown-linux-gnu
mkdir -p "$directory"
directory=$(cd "$directory" && pwd)
failed=""

has_library() { # target
    [ -d "$(rustc --print sysroot)/lib/rustlib/$1/lib" ]
}

for target; do
    if ! has_library "$target"; then
        echo "Rust has no library for $target: rustup target add $target" >&2
        rustup target add "$target" >&2 || { failed="$failed $target" && continue; }
    fi
    # Flags of this processor must not get into a wheel for others.
    env -u RUSTFLAGS CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-target}/wheel" \
        "$uv" tool run --quiet --from 'maturin[zig]==1.13.*' maturin build --release --locked --zig \
        --target "$target" --compatibility manylinux_2_28 --out "$directory" >&2 || failed="$failed $target"
done
[ -z "$failed" ] || {
    echo "no wheel was built for:$failed" >&2
    exit 1
}
