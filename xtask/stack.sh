#!/usr/bin/env bash
# Runs a command as root in another Debian release with its own container stack, on this machine's kernel:
#   stack.sh RELEASE COMMAND…     (`trixie`, `sid` …)
# debootstrap creates the root once, from the archive that this machine's apt uses, under $STACKS (default
# /var/tmp/dunnage-stacks), and it is kept. The command gets a mount namespace with that release as its root (runtimes refuse a
# plain chroot), a network namespace with its own loopback, so that this machine's docker0 is not touched, and a dockerd that ends
# with it. The directory $BIND appears inside at the same path. Without a command, only the root is created.
# Exit code 75: the root cannot be created here.
set -euo pipefail
release=${1:?usage: stack.sh RELEASE COMMAND…}; shift
stacks=${STACKS:-/var/tmp/dunnage-stacks}
root=$stacks/$release
cannot() { echo "stack.sh: $1" >&2; exit 75; }

[ "$(id -u)" = 0 ] || cannot "not root"
mkdir -p -m 700 "$stacks"
# Root is about to work in it, and another user may have made it first.
[ ! -L "$stacks" ] && [ "$(stat -c %u "$stacks")" = 0 ] && [ $((0$(stat -c %a "$stacks") & 022)) = 0 ] ||
    cannot "\`$stacks\` does not belong to root alone: remove it, or set \$STACKS to another directory"
# Setuid programs of the release are for no one on this machine.
chmod 700 "$stacks"
[ ! -e "$root/.ready" ] || [ $# -gt 0 ] || exit 0
exec 9>"$root.lock"
flock 9
if [ ! -e "$root/.ready" ]; then
    command -v debootstrap >/dev/null || cannot "debootstrap is not installed"
    # Debian's own archive, which has the release that runs here, comes first.
    archive=$(apt-get indextargets --format '$(SITE) $(LABEL)' 2>/dev/null | awk '$2 == "Debian" { print $1; exit }')
    [ -n "$archive" ] || cannot "apt has no Debian archive here; try \`apt-get update\`"
    rm -rf --one-file-system "$root"
    mkdir -p "$root"
    packages=ca-certificates,docker.io,docker-cli,podman,crun,runc,containerd,iptables,nftables,fuse-overlayfs,passt,slirp4netns
    packages=$packages,uidmap,netavark,aardvark-dns,iproute2,procps
    # Until bookworm the client is part of docker.io.
    case $release in bullseye | bookworm) packages=${packages/,docker-cli/} ;; esac
    debootstrap --force-check-gpg --variant=minbase --include="$packages" "$release" "$root" "$archive" >"$root.log" 2>&1 9>&- ||
        cannot "$(tail -n 3 "$root.log")"
    mkdir -p "$root/etc/docker" "$root/var/lib/docker" "$root/var/lib/containers"
    echo '{"runtimes":{"crun":{"path":"/usr/bin/crun"}}}' >"$root/etc/docker/daemon.json"
    touch "$root/.ready"
fi
[ $# -gt 0 ] || exit 0

# The lock is held until the command ends, because two dockerd with the same root would share its images.
inner='
set -e
mount --make-rprivate /
mount --bind "$0" "$0"
for place in proc sys dev; do mount --rbind "/$place" "$0/$place"; done
for place in run tmp; do mount -t tmpfs tmpfs "$0/$place"; done
if [ -n "${BIND:-}" ]; then mkdir -p "$0$BIND"; mount --rbind "$BIND" "$0$BIND"; fi
mkdir -p "$0/old"; cd "$0"; pivot_root . old; umount -l /old; cd /root
export HOME=/root PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
ip link set lo up
mkdir -p /run/lock
dockerd >/var/log/dockerd.log 2>&1 9>&- &
daemon=$!
for _ in $(seq 60); do docker info >/dev/null 2>&1 && break; sleep 0.5; done
status=0; "$@" 9>&- || status=$?
kill "$daemon" 2>/dev/null || true; wait "$daemon" 2>/dev/null || true
exit "$status"
'
unshare --net --mount --propagation unchanged bash -c "$inner" "$root" "$@"
