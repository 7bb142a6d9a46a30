#!/bin/sh
# Downloads the general kernel of this Debian or Ubuntu for QEMU guests into a directory: guest-kernel.sh DIRECTORY.
# Installs nothing and needs no root. Prints the kernel's path, for --kernel. A second run downloads nothing.
set -eu
export PATH="$PATH:/usr/sbin:/sbin"
directory=${1:?usage: guest-kernel.sh DIRECTORY}

kernel() { find "$directory/boot" -name 'vmlinuz-*' 2>/dev/null | sort -V | tail -n 1; }

if [ -z "$(kernel)" ]; then
    case "$(. /etc/os-release && echo "$ID")" in
        ubuntu) meta=linux-image-generic ;;
        *) meta=linux-image-amd64 ;;
    esac
    image=$(apt-cache depends --important "$meta" | sed -n 's/^ *Depends: \(linux-image-[0-9][^ ]*\)$/\1/p' | head -n 1)
    [ -n "$image" ] || { echo "package $meta not found: run apt-get update" >&2; exit 1; }
    version=${image#linux-image-}
    scratch=$(mktemp -d)
    trap 'rm -rf "$scratch"' EXIT
    packages=$image
    apt-cache show "linux-modules-$version" >/dev/null 2>&1 && packages="$packages linux-modules-$version linux-modules-extra-$version"
    # shellcheck disable=SC2086 - a list of package names
    (cd "$scratch" && apt-get download -qq $packages)
    for package in "$scratch"/*.deb; do dpkg -x "$package" "$scratch/root"; done
    root=$scratch/root
    [ -d "$root/lib/modules" ] || root=$scratch/root/usr
    depmod -b "$root" "$version"
    mkdir -p "$directory"
    cp -r "$scratch/root/." "$directory"
fi
kernel
