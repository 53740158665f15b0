#!/bin/sh
# Runs a program as process 1 of mount and PID namespaces of its own, in a root file system of its own.
#
#   unshare … namespace.sh ENTER FOLDER AGENT KIND CGROUP PROGRAM [ARGUMENT…]
#
# ENTER    the program of enter-root.c
# FOLDER   an empty folder of the host, for the mounts
# AGENT    the built agent, to be seen at /.agent
# KIND     host (the host's own tree, writable without leaving a trace), empty, or a folder that holds a tree
# CGROUP   a cgroup to be in and to see as its own at /sys/fs/cgroup: its folder under there, or - for none
set -e
enter=$1 folder=$2 agent=$3 kind=$4 cgroup=$5
shift 5
[ "$cgroup" = - ] || echo 0 > "/sys/fs/cgroup/$cgroup/cgroup.procs"
mount -t tmpfs tmpfs "$folder"
mkdir "$folder/upper" "$folder/work" "$folder/root"
root=$folder/root
case $kind in
  empty) mount -t tmpfs tmpfs "$root" ;;
  host) mount -t overlay overlay -o "lowerdir=/,upperdir=$folder/upper,workdir=$folder/work" "$root" ;;
  *) mount -t overlay overlay -o "lowerdir=$kind,upperdir=$folder/upper,workdir=$folder/work" "$root" ;;
esac
mkdir -p "$root/.agent" "$root/proc" "$root/dev" "$root/sys"
mount --bind -o ro "$agent" "$root/.agent"
mount -o remount,bind,ro "$root/.agent"
mount -t proc proc "$root/proc"
mount -t tmpfs tmpfs "$root/dev"
for device in null zero full random urandom tty; do
  touch "$root/dev/$device"
  mount --bind "/dev/$device" "$root/dev/$device"
done
mkdir "$root/dev/pts" "$root/dev/shm"
mount -t devpts -o newinstance,ptmxmode=0666,mode=0620,gid=5 devpts "$root/dev/pts"
ln -s pts/ptmx "$root/dev/ptmx"
ln -s /proc/self/fd "$root/dev/fd"
ln -s /proc/self/fd/0 "$root/dev/stdin"
ln -s /proc/self/fd/1 "$root/dev/stdout"
ln -s /proc/self/fd/2 "$root/dev/stderr"
# A test fills it: without a size it has half of the machine's memory.
mount -t tmpfs -o size=64m tmpfs "$root/dev/shm"
[ "$kind" = empty ] || { mkdir -p "$root/tmp"; mount -t tmpfs -o mode=1777 tmpfs "$root/tmp"; }
mount -t tmpfs tmpfs "$root/sys"
mkdir -p "$root/sys/fs/cgroup/memory"
if [ "$cgroup" != - ]; then
  case $cgroup in
    memory/*) mount --bind "/sys/fs/cgroup/$cgroup" "$root/sys/fs/cgroup/memory" ;;
    *) mount --bind "/sys/fs/cgroup/$cgroup" "$root/sys/fs/cgroup" ;;
  esac
fi
exec "$enter" "$root" "$@"
