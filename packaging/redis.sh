#!/bin/sh
# Installs Redis' server for fslab, which starts its own: redis.sh DIRECTORY. Debian's package redis-server would start
# one on a network port at once, and at each boot. The program itself is in the package redis-tools, under another name,
# and a link to it in the directory (of fslab's own programs) is enough.
set -eu
command -v redis-server >/dev/null || [ -x "$1/redis-server" ] && exit 0
command -v apt-get >/dev/null || exit 0 # elsewhere a package starts nothing: fslab doctor --packages names it
"$(dirname "$0")/system-packages.sh" redis-tools
! program=$(command -v redis-check-rdb) || ln -sf "$program" "$1/redis-server"
