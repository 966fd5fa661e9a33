#!/usr/bin/env bash
# Checks the promise of the front door: a bare Debian bookworm with git, a fresh clone, ./run and ./test.
#   tools/chroot_check.sh FOLDER [COMMAND...]     as root; needs debootstrap; default commands: ./run ./test
# FOLDER/bookworm.tar is kept, so that a second check starts from the same bare system without downloading it.
set -euo pipefail
root=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/.." && pwd)

fail() {
    echo "chroot_check: $*" >&2
    exit 1
}

[[ $# -ge 1 ]] || fail "usage: tools/chroot_check.sh FOLDER [COMMAND...]"
[[ $(id -u) -eq 0 ]] || fail "needs root (chroot, mount)"
mkdir -p "$1"
folder=$(cd "$1" && pwd)
shift
[[ $# -gt 0 ]] || set -- ./run ./test
base=$folder/bookworm.tar
system=$folder/system

# The mirror this machine uses already; both formats of apt's lists.
mirror=$(find /etc/apt -name sources.list -o -name '*.sources' -o -name '*.list' | xargs -r cat |
    sed -nE 's#^(deb .*|URIs: *)(https?://[^ ]*/debian)/?( .*)?$#\2#p' | head -n 1)
mirror=${mirror:-http://deb.debian.org/debian}

unmount() {
    for mounted in proc sys dev; do
        mountpoint -q "$system/$mounted" && umount -R -l "$system/$mounted"
    done
    return 0
}

if [[ ! -f $base ]]; then
    command -v debootstrap >/dev/null || fail "no debootstrap: apt-get install debootstrap"
    echo "Making a bare bookworm from $mirror" >&2
    rm -rf "$folder/new"
    debootstrap --variant=minbase --include=git,ca-certificates bookworm "$folder/new" "$mirror" \
        >"$folder/debootstrap.log" 2>&1 || fail "debootstrap failed, see $folder/debootstrap.log"
    tar -C "$folder/new" -cf "$base.part" . && mv "$base.part" "$base"
    rm -rf "$folder/new"
fi

trap unmount EXIT
unmount
rm -rf --one-file-system "$system"
mkdir -p "$system"
tar -C "$system" -xf "$base"
# What apt needs here to reach the mirror: a proxy, a private certificate, relaxed dates. Only settings of fetching.
cp /etc/resolv.conf "$system/etc/resolv.conf"
for file in /etc/apt/apt.conf.d/*; do
    if [[ -f $file ]] && grep -qE '^ *Acquire::' "$file"; then cp "$file" "$system/etc/apt/apt.conf.d/"; fi
done
cp -r /etc/ssl/certs/ca-certificates.crt "$system/etc/ssl/certs/ca-certificates.crt"
mount -t proc proc "$system/proc"
mount --rbind /sys "$system/sys" && mount --make-rslave "$system/sys"
mount --rbind /dev "$system/dev" && mount --make-rslave "$system/dev"

git clone -q --no-hardlinks "$root" "$system/frontier"
status=0
for command in "$@"; do
    echo "== $command" >&2
    # From another directory and without the caller's environment: the scripts find their own way.
    chroot "$system" /usr/bin/env -i HOME=/tmp PATH=/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 \
        bash -c "cd / && time bash -c 'cd /frontier && $command'" </dev/null || status=$?
    [[ $status -eq 0 ]] || fail "$command: exit $status in $system"
done
echo "ok: $*" >&2
