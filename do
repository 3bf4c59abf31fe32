#!/bin/sh
# Prepares this machine for building, then runs a target of the Makefile.
#
#     ./do demo     the main job       ./do test     all tests       ./do          what else there is
#
# KERNEL=no ./do TARGET omits the kernel engine and its requirements; ILP=no the solver of `midflight plan`.
# Skips, silently, what is already done.
set -eu
cd "$(dirname "$0")"

say() { printf 'do: %s\n' "$*" >&2; }
die() { say "$*"; exit 1; }
have() { command -v "$1" >/dev/null 2>&1; }

missing_packages() {
    have cc && [ -e /usr/include/stdio.h ] || echo build-essential
    have make || echo make
    [ -e /etc/ssl/certs/ca-certificates.crt ] || echo ca-certificates
    have rustup || have cargo || have curl || echo curl
    if needs_python && ! has_venv; then echo python3 python3-venv; fi
}

# Sets `root`: nothing, or sudo. Asks for a password only with `ask` and a terminal.
as_root() { # [ask]
    if [ "$(id -u)" = 0 ]; then root=''
    elif have sudo && { sudo -n true 2>/dev/null || { [ "${1:-}" = ask ] && [ -t 0 ]; }; }; then root=sudo
    else return 1
    fi
}

# Silent unless it fails. Waits up to five minutes for another apt-get, such as a fresh machine's first upgrade: apt-get itself waits for
# only one of its three locks.
apt_get() {
    log=$(mktemp)
    waits=0
    until $root env LC_ALL=C DEBIAN_FRONTEND=noninteractive apt-get -q -y --no-install-recommends -o DPkg::Lock::Timeout=300 \
        "$@" >"$log" 2>&1
    do
        if ! grep -q '^E: Could not get lock' "$log" || [ "$waits" -ge 100 ]; then
            say "apt-get $* failed: $(grep '^E: ' "$log" | head -n 1) (the whole log is $log)"
            return 1
        fi
        [ "$waits" -gt 0 ] || say "waiting for another apt-get to end"
        waits=$((waits + 1))
        sleep 3
    done
    rm -f "$log"
}

install_packages() {
    packages=$(missing_packages | tr ' ' '\n' | sort -u | tr '\n' ' ')
    [ -n "$packages" ] || return 0
    have apt-get || die "please install: $packages(this is no Debian or Ubuntu, so you know better how)"
    as_root ask || die "please run as root: apt-get install -y $packages"
    say "installing $packages"
    # shellcheck disable=SC2086 # a list of words
    apt_get update && apt_get install $packages || exit 1
}

# Requirements of tests/page/run.
have_browser() { have chromium && have python3 && python3 -c 'import ensurepip' 2>/dev/null; }

# Only tests use real backends.
wants_backends() { [ "$command" = test ]; }

# python-tests also works without Python.
needs_python() { case $command in python | wheel | bench-python) [ -z "${PYTHON:-}" ] ;; *) return 1 ;; esac; }
wants_python() { [ "$command" = python-tests ] || needs_python; }

# `.ci/python` looks for one that is new enough.
has_venv() { have python3 && python3 -c 'import ensurepip, venv' 2>/dev/null; }

# Optional parts that are missing, one line each.
lacking() {
    # The demo uses none of them.
    [ "$command" != demo ] || return 0
    [ "${KERNEL:-auto}" != auto ] || .ci/features kernel 2>&1 >/dev/null
    [ "${ILP:-auto}" != auto ] || .ci/features ilp 2>&1 >/dev/null
    have ip || echo "without labs: ip is missing (package iproute2)"
    if wants_backends && { ! have memcached || ! have redis-server; }; then
        echo "without tests of agents before real backends: memcached or redis-server is missing (packages of these names)"
    fi
    if wants_python && ! has_venv; then
        echo "without the Python package: python3 with venv is missing (packages python3, python3-venv)"
    fi
    if wants_backends && ! have_browser; then
        echo "without the test of the page in a browser: chromium or Python's venv is missing (packages chromium, python3-venv)"
    fi
}

# No packages for the kernel engine if no clang is new enough.
lacking_packages() {
    case $(lacking) in
    *kernel*) if clang_package; then echo libelf-dev zlib1g-dev pkg-config linux-libc-dev; fi ;;
    esac
    case $(lacking) in *ILP*) echo cmake g++ libclang-dev ;; esac
    [ "$command" = demo ] || have ip || echo iproute2
    if wants_backends; then
        have memcached || echo memcached
        have redis-server || echo redis-server
        # Ubuntu has a snap instead of this package.
        have_browser || ! apt-cache show chromium >/dev/null 2>&1 || echo chromium python3-venv
    fi
    if wants_python && ! has_venv; then echo python3 python3-venv; fi
}

# The package of a clang that can compile the kernel engine.
clang_package() {
    least=$(sed -n 's/^least=//p' dataplane/xdp/compile)
    for package in "clang-$least" clang; do
        version=$(LC_ALL=C apt-cache policy "$package" | sed -n 's/^ *Candidate: \([0-9]*:\)\{0,1\}\([0-9]*\).*/\2/p')
        if [ "${version:-0}" -ge "$least" ]; then echo "$package"; return; fi
    done
    return 1
}

# Reports what cannot be installed. Tries once a day per command, because commands need different parts.
install_lacking() {
    [ -n "$(lacking)" ] || return 0
    tried=${CARGO_TARGET_DIR:-target}/.do-tried-${command:-help}
    if have apt-get && as_root && [ -z "$(find "$tried" -mtime -1 2>/dev/null)" ]; then
        mkdir -p "${tried%/*}"
        : >"$tried"
        apt_get update || :
        packages=$(lacking_packages | tr '\n' ' ')
        [ -z "$packages" ] || say "installing $packages"
        # shellcheck disable=SC2086 # a list of words
        [ -z "$packages" ] || apt_get install $packages || :
    fi
    lacking | while read -r line; do say "$line"; done
    # Keeps make from repeating the message.
    case $(lacking) in *kernel*) export KERNEL=no ;; esac
    case $(lacking) in *ILP*) export ILP=no ;; esac
}

# Whether the first dotted version is at least the second.
at_least() { [ "$(printf '%s\n%s\n' "$1" "$2" | sort -V | head -n 1)" = "$2" ]; }

install_rust() {
    pinned=$(sed -n 's/^channel *= *"\(.*\)"/\1/p' rust-toolchain.toml)
    cargo_bin=${CARGO_HOME:-$HOME/.cargo}/bin
    have rustup || PATH=$cargo_bin:$PATH
    if ! have rustup; then
        # A Rust without rustup suffices if it is not older than ours.
        if have cargo && at_least "$(cargo --version | cut -d ' ' -f 2)" "$pinned"; then return 0; fi
        have curl || die "please install curl, or Rust $pinned or newer"
        say "installing Rust $pinned by rustup into ${cargo_bin%/bin}"
        script=$(mktemp)
        curl --proto '=https' --tlsv1.2 -sSf -o "$script" https://static.rust-lang.org/rustup/rustup-init.sh ||
            die "cannot fetch rustup; please install Rust $pinned yourself: https://rustup.rs"
        sh "$script" -y -q --no-modify-path --profile minimal --default-toolchain none >/dev/null ||
            die "rustup's installer failed; please install Rust $pinned yourself: https://rustup.rs"
        rm -f "$script"
        PATH=$cargo_bin:$PATH
    fi
    if ! rustup run "$pinned" cargo --version >/dev/null 2>&1 ||
        ! rustup run "$pinned" cargo clippy --version >/dev/null 2>&1 ||
        ! rustup run "$pinned" cargo fmt --version >/dev/null 2>&1
    then
        say "installing Rust $pinned"
        rustup -q toolchain install "$pinned" --profile minimal -c rustfmt -c clippy --no-self-update >/dev/null ||
            die "rustup cannot install Rust $pinned; is the network there? Try: rustup toolchain install $pinned"
    fi
}

command=${1:-}
install_packages
install_lacking
install_rust
export PATH
[ "${1:-}" = setup ] && exit 0
exec make --no-print-directory "$@"
