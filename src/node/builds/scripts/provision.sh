# Runs as root in a fresh image of any Linux, in whatever shell it has: adds what commands in sandboxes count on. What can
# be installed is taken from the distribution; the rest is files. Running it again changes nothing. `$1`: refusals.sh.
set -u

have() { command -v "$1" >/dev/null 2>&1; }
say() { echo "provision: $*"; }

mkdir -p /root /tmp /var/tmp /run /etc/profile.d /usr/local/bin /home
chmod 1777 /tmp /var/tmp
chmod 700 /root

# --- packages
missing=
have bash || missing="$missing bash"
have sudo || missing="$missing sudo"
have useradd || have adduser || missing="$missing useradd"
# What this build itself was given to trust is no bundle of the image's own.
own_authorities() { sed '/^# Certificates of this sandbox/,/^# End of the certificates of this sandbox/d' "$1" 2>/dev/null | grep -q BEGIN; }
own_authorities /etc/ssl/certs/ca-certificates.crt || own_authorities /etc/pki/tls/certs/ca-bundle.crt || own_authorities /etc/ssl/cert.pem || missing="$missing ca-certificates"

# Whoever made the layer of this is told by this file that another attempt may do better.
incomplete=/usr/lib/sandbox/incomplete
rm -f $incomplete
manager=yes
install_missing() {
  if have apt-get; then
    export DEBIAN_FRONTEND=noninteractive
    options='-o Acquire::Retries=0 -o Acquire::http::Timeout=10 -o Acquire::https::Timeout=10 -o DPkg::Lock::Timeout=60'
    apt-get $options -q -q update || return 1
    apt-get $options -q -q install --yes --no-install-recommends $(echo "$missing" | sed 's/useradd/passwd/') || return 1
    rm -rf /var/lib/apt/lists/*
    mkdir -p /var/lib/apt/lists/partial
  elif have apk; then apk add --no-cache $(echo "$missing" | sed 's/useradd/shadow/')
  elif have dnf; then dnf install -y --setopt=timeout=20 $(echo "$missing" | sed 's/useradd/shadow-utils/') && dnf clean all
  elif have microdnf; then microdnf install -y $(echo "$missing" | sed 's/useradd/shadow-utils/') && microdnf clean all
  elif have yum; then yum install -y $(echo "$missing" | sed 's/useradd/shadow-utils/') && yum clean all
  elif have zypper; then zypper --non-interactive install --no-recommends $(echo "$missing" | sed 's/useradd/shadow/') && zypper clean --all
  elif have pacman; then pacman -Sy --noconfirm --needed $(echo "$missing" | sed 's/useradd/shadow/') && pacman -Scc --noconfirm
  else
    say 'the image has no package manager that is known here'
    manager=
    return 1
  fi
}

if [ -n "$missing" ]; then
  say "installing$missing"
  install_missing >/tmp/provision.log 2>&1 || {
    tail -n 5 /tmp/provision.log
    say "could not install$missing; going on without what is still missing"
    # Without a package manager, no attempt does better.
    if [ -n "$manager" ]; then
      mkdir -p /usr/lib/sandbox
      echo "$missing" >$incomplete
    fi
  }
  rm -f /tmp/provision.log
fi

# --- files that every Linux has and some images leave out
[ -e /etc/passwd ] || echo 'root:x:0:0:root:/root:/bin/sh' >/etc/passwd
[ -e /etc/group ] || echo 'root:x:0:' >/etc/group
grep -q '^root:' /etc/passwd || echo 'root:x:0:0:root:/root:/bin/sh' >>/etc/passwd
# --- root has no password: inside a sandbox it guards nothing
if [ -e /etc/shadow ]; then sed -i 's/^root:[^:]*:/root::/' /etc/shadow; fi

# --- login shells: commands run through them, so what the profile sets is what commands see
cat >/etc/profile.d/sandbox.sh <<'PROFILE'
if [ -n "${BASH_VERSION:-}" ]; then
  export SHELL=/bin/bash
  export PS1='\w \$ '
  if [ -e "$HOME/.bash_profile" ] || [ -e "$HOME/.bash_login" ] || [ ! -e "$HOME/.profile" ]; then
    [ -r "$HOME/.bashrc" ] && . "$HOME/.bashrc"
  fi
  if [ -e "$HOME/.bash_profile" ] || [ -e "$HOME/.bash_login" ]; then
    [ -r "$HOME/.profile" ] && . "$HOME/.profile"
  fi
fi
:
PROFILE
if [ ! -e /etc/profile ]; then
  cat >/etc/profile <<'PROFILE'
export PATH=${PATH:-/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin}
PROFILE
fi
grep -q '/etc/profile.d' /etc/profile || cat >>/etc/profile <<'PROFILE'
for file in /etc/profile.d/*.sh; do
  [ -r "$file" ] && . "$file"
done
unset file
PROFILE

# --- places where everybody may write
mkdir -p /code /usr/local
chmod 777 /code
# Only what is not so yet: a change of mode copies the file into this layer.
find /usr/local '(' -type f -o -type d ')' '!' -perm -0666 -exec chmod a+rwX '{}' + 2>/dev/null
chmod 777 /usr/local

# --- programs that can't work here say so, also those that are installed later
mkdir -p /usr/lib/sandbox
printf '%s' "$1" >/usr/lib/sandbox/refusals
chmod 755 /usr/lib/sandbox/refusals
if have dpkg; then
  mkdir -p /etc/dpkg/dpkg.cfg.d
  echo 'post-invoke=/usr/lib/sandbox/refusals' >/etc/dpkg/dpkg.cfg.d/sandbox
fi
if have apk; then
  mkdir -p /etc/apk/commit_hooks.d
  ln -sf /usr/lib/sandbox/refusals /etc/apk/commit_hooks.d/refusals
fi
/usr/lib/sandbox/refusals

# --- sudo asks for no password of members of the group of administrators
if have sudo; then
  mkdir -p /etc/sudoers.d
  [ -e /etc/sudoers ] && ! grep -q 'includedir /etc/sudoers.d' /etc/sudoers && echo '#includedir /etc/sudoers.d' >>/etc/sudoers
else
  say 'sudo is missing: commands that need root must be run as root'
fi
exit 0
