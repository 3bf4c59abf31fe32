#!/bin/sh
# Midflight's front door: makes this machine able to build, then runs a target of the Makefile.
#
#     ./do demo     the main job       ./do test     all tests       ./do          what else there is
#
# Does nothing that is done already, and says nothing when there is nothing to do.
set -eu
cd "$(dirname "$0")"

say() { printf 'do: %s\n' "$*" >&2; }
die() { say "$*"; exit 1; }
have() { command -v "$1" >/dev/null 2>&1; }

# Debian packages behind the commands that are missing.
missing_packages() {
    have cc && [ -e /usr/include/stdio.h ] || echo build-essential
    have make || echo make
    [ -e /etc/ssl/certs/ca-certificates.crt ] || echo ca-certificates
    have rustup || have cargo || have curl || echo curl
}

install_packages() {
    packages=$(missing_packages | sort -u | tr '\n' ' ')
    [ -n "$packages" ] || return 0
    have apt-get || die "please install: $packages(this is no Debian or Ubuntu, so you know better how)"
    if [ "$(id -u)" = 0 ]; then root=''
    elif have sudo && { sudo -n true 2>/dev/null || [ -t 0 ]; }; then root=sudo
    else die "please run as root: apt-get install -y $packages"
    fi
    say "installing $packages"
    log=$(mktemp)
    # shellcheck disable=SC2086 # a list of words
    if $root env DEBIAN_FRONTEND=noninteractive sh -c \
        'apt-get update -q && apt-get install -q -y --no-install-recommends "$@"' sh $packages >"$log" 2>&1
    then rm -f "$log"
    else tail -n 20 "$log" >&2; die "apt-get install $packages failed; the whole log is $log"
    fi
}

# The first of two dotted versions is at least the second.
at_least() { [ "$(printf '%s\n%s\n' "$1" "$2" | sort -V | head -n 1)" = "$2" ]; }

install_rust() {
    pinned=$(sed -n 's/^channel *= *"\(.*\)"/\1/p' rust-toolchain.toml)
    cargo_bin=${CARGO_HOME:-$HOME/.cargo}/bin
    have rustup || PATH=$cargo_bin:$PATH
    if ! have rustup; then
        # A Rust without rustup does, if it is not older than ours.
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

install_packages
install_rust
export PATH
[ "${1:-}" = setup ] && exit 0
exec make --no-print-directory "$@"
