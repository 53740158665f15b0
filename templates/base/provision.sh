#!/bin/sh
# Runs as root inside the fresh root filesystem, after the packages and Node.js are in it and before it becomes a layer.
set -eu

# --- users: commands run as `user` unless the caller names another one
useradd --create-home --uid 1000 --user-group --groups sudo --shell /bin/bash user
passwd --delete root >/dev/null
passwd --delete user >/dev/null
printf 'user ALL=(ALL:ALL) NOPASSWD: ALL\n' >/etc/sudoers.d/user
chmod 0440 /etc/sudoers.d/user

# --- places where everybody may write: code under /code, global installs of npm and pip under /usr/local
mkdir -p /code /usr/local/lib/python3.11/dist-packages
chmod -R a+rwX /usr/local
chmod 0777 /code /usr/local

# A sandbox is one person's machine: pip may install outside of a virtual environment.
rm -f /usr/lib/python3*/EXTERNALLY-MANAGED

# --- login shells: commands run through them, so what they set is what commands see
cat >/etc/profile.d/sandbox.sh <<'PROFILE'
export SHELL=/bin/bash
export PS1='\w \$ '
# bash leaves ~/.profile (and with it ~/.bashrc) out where one of these exists.
if [ -n "${BASH_VERSION:-}" ] && { [ -e "$HOME/.bash_profile" ] || [ -e "$HOME/.bash_login" ]; }; then
  [ -r "$HOME/.profile" ] && . "$HOME/.profile"
fi
:
PROFILE
# Interactive shells would otherwise take their prompt from the distribution's ~/.bashrc.
for home in /etc/skel /root /home/user; do
  printf '\nexport PS1='\''\\w \\$ '\''\n' >>"$home/.bashrc"
done

# --- names: the platform writes the sandbox's own at start
printf 'sandbox\n' >/etc/hostname
printf '127.0.0.1 localhost sandbox\n::1 localhost ip6-localhost ip6-loopback\n' >/etc/hosts
printf 'nameserver 8.8.8.8\n' >/etc/resolv.conf
printf 'LANG=C.UTF-8\n' >/etc/default/locale
: >/etc/machine-id

# --- what only the building of this file system needed; a sandbox mounts its own /dev and /run
rm -rf /var/cache/apt/* /var/cache/debconf/*-old /var/cache/ldconfig/aux-cache /var/lib/apt/lists/* /var/log/* /tmp/* /var/tmp/* /root/.npm
mkdir -p /var/log/apt /var/lib/apt/lists/partial /var/cache/apt/archives/partial
rm -rf /dev/* /run/*
