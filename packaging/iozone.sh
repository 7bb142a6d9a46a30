#!/bin/sh
# Brings IOzone from Debian's non-free component into a directory, and changes nothing else: packaging/iozone.sh DIRECTORY
# apt-get downloads the package by a list of sources that lies in DIRECTORY too, and dpkg unpacks it there. Needs no root.
# The program is DIRECTORY/iozone: put DIRECTORY on PATH, or name it in FSLAB_IOZONE for the tests.
set -eu
directory=${1:?usage: packaging/iozone.sh DIRECTORY}
mkdir -p "$directory"
directory=$(cd "$directory" && pwd)
[ ! -x "$directory/iozone" ] || exit 0

give_up() {
    echo "IOzone is not installed: $1" >&2
    exit 1
}

command -v apt-get >/dev/null 2>&1 && command -v dpkg >/dev/null 2>&1 || give_up "this needs apt-get and dpkg"
suite=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
id=$(. /etc/os-release && echo "${ID:-}")
# Where the system gets its own packages from: the first source of Debian's archive that it has.
archive=$(apt-get indextargets --format '$(SITE)|$(REPO_URI)|$(RELEASE)|$(SIGNED_BY)' 2>/dev/null |
    awk -F'|' -v suite="$suite" '$3 == suite { print $2 "|" $4; exit }')
case $id in
    debian) component=non-free keyring=/usr/share/keyrings/debian-archive-keyring.gpg uri=http://deb.debian.org/debian ;;
    ubuntu) component=multiverse keyring=/usr/share/keyrings/ubuntu-archive-keyring.gpg uri=http://archive.ubuntu.com/ubuntu ;;
    *) give_up "known for Debian and Ubuntu only; elsewhere build it from https://www.iozone.org" ;;
esac
[ -n "$suite" ] || give_up "/etc/os-release names no VERSION_CODENAME"
[ -z "${archive%%|*}" ] || uri=${archive%%|*}

# apt splits and quotes its options itself, so that it is given names without spaces.
work=$(mktemp -d "${TMPDIR:-/tmp}/fslab-iozone.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
chmod 755 "$work"
mkdir -p "$work/lists/partial" "$work/cache/archives/partial"
echo "deb [signed-by=$keyring] $uri $suite $component" >"$work/sources.list"
echo "downloading iozone3 from the $component component into $directory; the system's own sources stay as they are" >&2
apt() {
    apt-get -qq -o Dir::Etc::SourceList="$work/sources.list" -o Dir::Etc::SourceParts=/dev/null \
        -o Dir::State::Lists="$work/lists" -o Dir::Cache="$work/cache" -o APT::Sandbox::User="" "$@"
}
apt update >/dev/null 2>"$work/said" || give_up "$(tail -n 1 "$work/said")"
(cd "$work" && apt download iozone3 >/dev/null 2>"$work/said") || give_up "$(tail -n 1 "$work/said")"
dpkg-deb --extract "$work"/iozone3_*.deb "$work/unpacked"
cp "$work/unpacked/usr/share/doc/iozone3/copyright" "$directory/copyright"
cp "$work/unpacked/usr/bin/iozone" "$directory/iozone.new"
mv "$directory/iozone.new" "$directory/iozone"
"$directory/iozone" -v | sed -n 's/.*Revision: \([0-9.]*\).*/IOzone \1/p' >&2
