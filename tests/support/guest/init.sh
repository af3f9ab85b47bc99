#!/busybox sh
# The first program of the guest. Container runtimes cannot pivot away from an initramfs, so everything
# moves to another root.
echo guest: init has begun
/busybox mkdir /new
/busybox mount -t tmpfs -o mode=755,size=80% tmpfs /new
/busybox mv /guest/* /new/
exec /busybox switch_root /new /guest-init
