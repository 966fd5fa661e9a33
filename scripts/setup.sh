#!/usr/bin/env bash
# Installs the Debian packages of scripts/packages.txt that are missing, and does nothing when none is.
#   scripts/setup.sh [SET...]    SET is build, test or dev; without one: build and test
set -euo pipefail
here=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")" && pwd)

fail() {
    echo "setup: $*" >&2
    exit 1
}

[[ $# -gt 0 ]] || set -- build test
for set_name in "$@"; do
    case $set_name in
        build | test | dev) ;;
        *) fail "unknown package set '$set_name', expected build, test or dev" ;;
    esac
done
command -v dpkg-query >/dev/null ||
    fail "no dpkg-query, so this is not a Debian system: install what $here/packages.txt names by hand"

wanted=()
while read -r set_name package; do
    for asked in "$@"; do
        [[ $set_name == "$asked" ]] && wanted+=("$package")
    done
done < <(grep -v '^#' "$here/packages.txt")

installed=$(dpkg-query -W -f='${Package} ${db:Status-Status}\n' "${wanted[@]}" 2>/dev/null || true)
missing=()
for package in "${wanted[@]}"; do
    grep -qxF "$package installed" <<<"$installed" || missing+=("$package")
done
[[ ${#missing[@]} -gt 0 ]] || exit 0

as_root=()
if [[ $(id -u) -ne 0 ]]; then
    command -v sudo >/dev/null ||
        fail "missing packages and neither root nor sudo; as root: apt-get install ${missing[*]}"
    as_root=(sudo)
    [[ -t 0 ]] || as_root=(sudo -n) # nobody could type a password
fi

log=$(mktemp)
trap 'rm -f "$log"' EXIT
apt() {
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -o Acquire::Retries=3 -o DPkg::Lock::Timeout=300 "$@" \
        </dev/null >>"$log" 2>&1
}
echo "Installing ${#missing[@]} Debian packages: ${missing[*]}" >&2
if ! apt update || ! apt install -y --no-install-recommends "${missing[@]}"; then
    tail -n 20 "$log" >&2
    fail "apt-get could not install ${missing[*]} (its last lines are above)"
fi
