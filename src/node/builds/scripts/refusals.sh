#!/bin/sh
# Says in one line why a program can't work in this sandbox and where it can, in place of whatever it would end in. For each
# of these programs that the system has, /usr/local/bin has a link to this file, which is found first.
# By its own name it makes these links; the package manager has it do so after every change.
set -u

files='sshfs bindfs s3fs gcsfuse fuse-overlayfs squashfuse archivemount gocryptfs encfs mergerfs rclone'
names="unshare bwrap podman buildah docker dockerd systemd-run chromium $files"
own=/usr/lib/sandbox/refusals
links=/usr/local/bin

program_of() {
  for folder in /usr/sbin /usr/bin /sbin /bin; do
    if [ -x "$folder/$1" ]; then
      echo "$folder/$1"
      return
    fi
  done
  return 1
}

link_all() {
  for each in $names; do
    if program_of "$each" >/dev/null; then
      [ -e "$links/$each" ] || ln -s "$own" "$links/$each"
    elif [ "$(readlink "$links/$each")" = "$own" ]; then
      rm -f "$links/$each"
    fi
  done
}

refuse() {
  echo "$name: $2" >&2
  exit "$1"
}

name=${0##*/}
if [ "$name" = refusals ]; then
  link_all
  exit 0
fi
program=$(program_of "$name") || refuse 127 'not found'

# gVisor gives every sandbox this device, crun none.
on_gvisor() { [ -c /dev/fuse ]; }

# Whether one of the words is the first one.
has() {
  wanted=$1
  shift
  for word in "$@"; do [ "$word" = "$wanted" ] && return; done
  return 1
}

# What asks for nothing that a sandbox lacks.
asks_little() {
  case $name in
    docker) [ -n "${DOCKER_HOST-}${DOCKER_CONTEXT-}" ] || [ -S /var/run/docker.sock ] && return ;;
    podman | buildah) [ -n "${CONTAINER_HOST-}${CONTAINER_CONNECTION-}" ] && return ;;
    rclone) [ "${1-}" != mount ] && return ;;
    chromium)
      has --no-sandbox "$@" ${CHROMIUM_FLAGS-} || grep -qs -e --no-sandbox /etc/chromium.d/* && return ;;
  esac
  case ${1-} in
    --version | --help | -V | -h | help | version) return 0 ;;
    -v) [ "$name" != bwrap ] ;;
    --remote | -r | --url* | --connection | -c | --context | -H | --host*) [ "$name" = podman ] || [ "$name" = docker ] ;;
    login | logout | context | buildx | completion | '') [ "$name" = podman ] || [ "$name" = docker ] || [ "$name" = buildah ] ;;
    *) return 1 ;;
  esac
}

asks_little "$@" && exec "$program" "$@"
case $name in
  docker | dockerd)
    refuse 1 "no daemon can run in a sandbox, neither on the driver crun nor on gvisor; DOCKER_HOST may name one elsewhere" ;;
  systemd-run)
    refuse 1 "systemd is not process 1 of a sandbox on any driver (crun, gvisor); use service, or start it in the background" ;;
esac
on_gvisor && exec "$program" "$@"
case $name in
  unshare) refuse 1 "the driver crun lets sandboxes make no namespaces; the driver gvisor does" ;;
  bwrap) refuse 1 "the driver crun lets sandboxes make no namespaces; on the driver gvisor it works as: unshare -Urm bwrap" ;;
  podman) refuse 125 "neither the driver crun nor gvisor runs containers in a sandbox; images are made by umoci, or on gvisor by buildah" ;;
  buildah)
    refuse 125 "not on the driver crun; on the driver gvisor it works as: unshare -Urm buildah --storage-driver vfs --isolation chroot" ;;
  chromium) refuse 1 "its own sandbox can't work on the driver crun: start it with --no-sandbox, or on the driver gvisor" ;;
  *) refuse 1 "no FUSE on the driver crun; on the driver gvisor it works within: unshare -Urm" ;;
esac
