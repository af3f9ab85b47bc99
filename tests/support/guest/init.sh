#!/busybox sh
# Where the guest's kernel begins. Container runtimes cannot pivot away from an initramfs, so all moves
# to a root that can be left.
/busybox mkdir /new
/busybox mount -t tmpfs -o mode=755,size=80% tmpfs /new
/busybox mv /guest/* /new/
exec /busybox switch_root /new /guest-init
