# Runs a program with the /sys of its own network namespace, and the control groups of the machine.
set -e
kept=$(mktemp -d)
mount --rbind /sys/fs/cgroup "$kept"
mount -t sysfs sysfs /sys
mount --rbind "$kept" /sys/fs/cgroup
umount -l "$kept"
rmdir "$kept"
exec "$@"
