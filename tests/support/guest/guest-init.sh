#!/bin/busybox sh
# Pid 1 of the guest: sets up a machine much like systemd does, runs the script, writes its result to the
# second serial line, and shuts the machine down.
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8
busybox mkdir -p /proc /sys /dev /run /tmp /root /etc /out /var/lib /sbin
busybox mount -t proc -o nosuid,nodev,noexec proc /proc
busybox --install -s /bin

mount -t sysfs -o nosuid,nodev,noexec sysfs /sys
mount -t devtmpfs -o nosuid devtmpfs /dev
mkdir -p /dev/pts /dev/shm
mount -t devpts -o nosuid,noexec,gid=5,mode=620,ptmxmode=666 devpts /dev/pts
mount -t tmpfs -o nosuid,nodev tmpfs /dev/shm
mount -t tmpfs -o nosuid,nodev,mode=755 tmpfs /run
chmod 1777 /tmp
ln -sf /proc/self/fd /dev/fd
mount --make-rshared /
echo guest > /proc/sys/kernel/hostname
# A guest that stands still is asked where it is.
echo 1 > /proc/sys/kernel/sysrq
printf 'root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n' > /etc/passwd
printf 'root:x:0:\nnogroup:x:65534:\n' > /etc/group

while read -r module; do
    insmod "/guest-modules/$module" || echo "guest: cannot load $module"
done < /guest-modules/order
ip link set lo up

# The cgroups of a booted system: every controller delegated, no process in the root, pid 1 and the
# session in separate cgroups.
groups=/sys/fs/cgroup
mount -t cgroup2 -o nosuid,nodev,noexec,nsdelegate,memory_recursiveprot cgroup2 $groups
session=$groups/user.slice/session-1.scope
mkdir -p $groups/init.scope $session
echo 1 > $groups/init.scope/cgroup.procs
echo "+cpuset +cpu +io +memory +pids" > $groups/cgroup.subtree_control
echo "+memory +pids" > $groups/user.slice/cgroup.subtree_control

# The script's output goes to the console as it comes, since after a deadline nothing else is left of it,
# and to a file. The script is a child of pid 1.
mkfifo /guest-says
tee /guest-output < /guest-says &
cd /out
echo "guest: the script begins"
sh -c 'echo $$ > "$0"/cgroup.procs; exec sh /guest-script' $session > /guest-says 2>&1
code=$?
wait $!
echo $code > /guest-code
echo "guest: the script ended with $code"

# The exit code comes last: if it has arrived, everything has.
stty -F /dev/ttyS1 raw -echo
tar -c -C / -f /dev/ttyS1 guest-output out guest-code
sync
reboot -f
