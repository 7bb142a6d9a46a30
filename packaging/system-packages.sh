#!/bin/sh
# Makes sure that fslab can be built, and that the named packages are installed: system-packages.sh [PACKAGE...]
# As root it installs them with apt-get, dnf or pacman; otherwise, or on another distribution, it prints what to
# install and goes on. It never asks for a password. Which packages fslab's tools are in: fslab doctor --packages.
set -eu
export PATH="$PATH:/usr/local/sbin:/usr/sbin:/sbin"

family=other
for id in $(. /etc/os-release 2>/dev/null && echo "${ID:-} ${ID_LIKE:-}"); do
    case $id in
        debian | ubuntu) family=debian ;;
        fedora | rhel | centos) family=fedora ;;
        arch | archarm | manjaro) family=arch ;;
        *) continue ;;
    esac
    break
done

build=""
command -v cc >/dev/null 2>&1 || build="$build gcc"
python3 -c 'import ensurepip, venv' 2>/dev/null || build="$build python3-venv"
missing="$build $*"

if ! command -v cargo >/dev/null 2>&1; then
    echo "fslab's load engine is written in Rust and cargo is not installed: see https://rustup.rs, or install the package cargo (Debian 13, Ubuntu 24.04, Fedora, Arch)" >&2
    exit 1
fi
rust=$(cargo --version | cut -d' ' -f2)
oldest=1.85
if [ "$(printf '%s\n%s\n' "$oldest" "$rust" | sort -V | head -n 1)" != "$oldest" ]; then
    echo "cargo $rust is too old: the load engine needs Rust $oldest or newer, see https://rustup.rs" >&2
    exit 1
fi

# shellcheck disable=SC2086 - lists of package names
set -- $missing
[ $# -gt 0 ] || exit 0

knows() { # package: whether the package manager can install it
    case $family in
        debian) apt-cache show --no-all-versions "$1" >/dev/null 2>&1 ;;
        fedora) dnf -q list "$1" >/dev/null 2>&1 ;;
        arch) pacman -Si "$1" >/dev/null 2>&1 ;;
    esac
}

install() { # packages
    case $family in
        debian) DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >/dev/null ;;
        fedora) dnf install -y -q --setopt=install_weak_deps=False "$@" ;;
        arch) pacman -S --needed --noconfirm "$@" >/dev/null ;;
    esac
}

if [ "$(id -u)" = 0 ] && [ $family != other ]; then
    if [ $family = debian ] && ! knows "$1"; then apt-get update -qq; fi
    wanted="" unknown=""
    for package; do
        if knows "$package"; then wanted="$wanted $package"; else unknown="$unknown $package"; fi
    done
    [ -z "$unknown" ] || echo "not available in this distribution, skipped:$unknown" >&2
    [ -n "$wanted" ] || exit 0
    echo "installing:$wanted"
    # shellcheck disable=SC2086
    install $wanted 2>/dev/null || {
        [ $family != debian ] || apt-get update -qq
        # shellcheck disable=SC2086
        install $wanted
    }
else
    case $family in
        debian) how="sudo apt-get install --no-install-recommends" ;;
        fedora) how="sudo dnf install" ;;
        arch) how="sudo pacman -S" ;;
        *) how="install these packages (Debian's names):" ;;
    esac
    echo "some programs are missing; what needs them is skipped. To install them:" >&2
    echo "    $how $*" >&2
    [ -z "$build" ] || exit 1
fi
