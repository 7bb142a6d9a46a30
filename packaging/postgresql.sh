#!/bin/sh
# Installs PostgreSQL's server for the tests, which start one of their own in a temporary directory. Debian's package
# would make a cluster and start it at once, and at each boot: it is told not to, for as long as it is installed here.
set -eu
here=$(dirname "$0")
conf=/etc/postgresql-common/createcluster.conf
package=postgresql

ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 && exit 0
command -v initdb >/dev/null && exit 0
for id in $(. /etc/os-release 2>/dev/null && echo "${ID:-} ${ID_LIKE:-}"); do
    case $id in fedora | rhel | centos) package=postgresql-server ;; esac
done
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    "$here/system-packages.sh" postgresql-common
    if [ -f "$conf" ]; then
        cp -p "$conf" "$conf.fslab"
        trap 'mv "$conf.fslab" "$conf"' EXIT
        trap 'exit 1' HUP INT TERM
        echo "create_main_cluster = false" >>"$conf"
    fi
fi
"$here/system-packages.sh" "$package"
