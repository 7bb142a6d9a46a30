#!/bin/sh
# Runs a command with TMPDIR in memory: for root in a tmpfs of limited size that no other process sees, and that is gone
# when the command ends, also when it is killed.
#
#   tests/in_memory.sh cargo test
#
# On a disk, tests that create and delete thousands of files spend most of their time in its journal.
set -eu
if [ "$(id -u)" != 0 ]; then exec "$@"; fi
made=$(mktemp -d "${TMPDIR:-/tmp}/fslab-rust-XXXXXX")
trap 'rmdir "$made" || :' EXIT
mount="mount -t tmpfs -o size=3g,mode=1777 fslab-rust"
# A container may refuse a mount namespace, or a mount in it.
if ! unshare --mount $mount "$made" 2>/dev/null; then "$@"; exit; fi
# In a mount namespace of its own: what the command mounts below is unmounted with it.
unshare --mount sh -ec "$mount \"\$0\"; TMPDIR=\$0 exec \"\$@\"" "$made" "$@" &
child=$!
trap 'kill "$child" 2>/dev/null; wait "$child"; exit 143' INT TERM HUP
wait "$child"
