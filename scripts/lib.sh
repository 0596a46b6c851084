# SPDX-License-Identifier: MIT
# Shared helpers of the shell scripts; sourced, never run.
# shellcheck shell=bash
enpu_root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
enpu_cache=${ENPU_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/enpu}
# shellcheck disable=SC2034
enpu_build=${ENPU_BUILD:-$enpu_root/build}
export ENPU_CACHE=$enpu_cache
mkdir -p "$enpu_cache"

say() { printf '%s: %s\n' "${0##*/}" "$*" >&2; }
die() { say "$*"; exit 1; }

# need TOOL PACKAGE: one clear sentence when a tool is missing.
need() { command -v "$1" >/dev/null || die "the program '$1' is missing; run 'make setup' or install the package '$2'"; }

# locked NAME: one process at a time for the rest of this script; waits at most 30 minutes.
locked() {
    exec {enpu_lock_fd}>"$enpu_cache/$1.lock"
    if ! flock -n "$enpu_lock_fd"; then
        say "waiting for another '$1' to finish"
        flock -w 1800 "$enpu_lock_fd" || die "another '$1' still runs after 30 minutes; see who holds $enpu_cache/$1.lock"
    fi
}

# quietly LOG COMMAND…: output goes to a log; a dot every 5 s says that it lives; the log's end is shown on failure.
quietly() {
    local log=$1 pid rc=0
    shift
    mkdir -p "$(dirname "$log")"
    "$@" >"$log" 2>&1 &
    pid=$!
    local n=0
    while kill -0 "$pid" 2>/dev/null; do
        sleep 0.2
        n=$((n + 1))
        ((n % 25)) || printf '.' >&2
    done
    ((n < 25)) || printf '\n' >&2
    wait "$pid" || rc=$?
    ((rc == 0)) || { tail -n 30 "$log" >&2; say "failed ($*), the whole log is in $log"; }
    return "$rc"
}

hash_of() { sha256sum | cut -c1-16; }

# copy_kmod DIR: the module's sources as they lie in the checkout, for a build that leaves no trace there.
copy_kmod() {
    (cd "$enpu_root" && git ls-files -co --exclude-standard kmod qemu-device/hw/include | tar -cf - -T -) | tar -xf - -C "$1"
}

# silent COMMAND…: runs a build; anything printed but the compiler's name is a failure.
silent() {
    local words
    words=$("$@" 2>&1) || { printf '%s\n' "$words"; return 1; }
    words=$(grep -v -e '^$' -e '^warning: the compiler differs' -e 'The kernel was built by' -e 'You are using' \
        -e 'Skipping BTF generation' <<<"$words" || true)
    [[ -z $words ]] || { printf '%s\n' "$words"; return 1; }
}

# The suite that has Linux 6.12 for this host.
debian_kernel_suite() { if [[ $(. /etc/os-release && echo "$VERSION_CODENAME") == bookworm ]]; then echo bookworm-backports; else echo trixie; fi; }

# apt_depends PACKAGE VERSION EXPRESSION: the first dependency of a package whose name matches.
apt_depends() {
    "$enpu_root/scripts/apt-root" apt cache show "$1=$2" | sed -n 's/^Depends: //p' | tr ',' '\n' |
        sed 's/^ *//' | awk -v p="$3" '$1 ~ p {print $1; exit}'
}

# finish_modules DIR: modules of an unpacked kernel lie in DIR/lib/modules, with an index. DIR/release names them.
finish_modules() {
    # Where /lib is a link to /usr/lib, the package has its modules there.
    [[ -d $1/lib/modules ]] || { mkdir -p "$1/lib" && ln -sfn "$1/usr/lib/modules" "$1/lib/modules"; }
    depmod -b "$1" "$(cat "$1/release")"
}

# in_private_root ROOT COMMAND [FOLDER…]: a shell command line inside another root, with folders of the host at their own paths;
# without root by a user namespace. The environment is ENPU_* and GGML_* only.
in_private_root() {
    local how=(unshare --mount)
    [[ $(id -u) == 0 ]] || how=(unshare --map-root-user --mount)
    # Inside a chroot "/" is no mount whose propagation could be changed.
    mountpoint -q / || how+=(--propagation unchanged)
    local vars=()
    mapfile -t vars < <(env | grep -E '^(ENPU|GGML)_[A-Z_]+=' || true)
    # shellcheck disable=SC2016
    "${how[@]}" bash -c '
        set -e
        root=$1 command=$2 folders=$3; shift 3
        mkdir -p "$root/dev" "$root/proc" "$root/tmp"
        mount --rbind /dev "$root/dev"
        mount --rbind /proc "$root/proc"
        while ((folders-- > 0)); do mkdir -p "$root$1"; mount --rbind "$1" "$root$1"; shift; done
        exec chroot "$root" /usr/bin/env -i PATH=/usr/bin:/usr/sbin HOME=/ "$@" bash -c "$command"
    ' _ "$1" "$2" "$(($# - 2))" "${@:3}" "${vars[@]}"
}
