# ensure-user NAME [admin]: runs as root in any Linux. Makes the account where it is missing; with `admin`, gives it sudo
# without a password.
set -eu
name=$1 admin=${2:-}

shell=/bin/sh
[ -x /bin/bash ] && shell=/bin/bash

if ! grep -q "^$name:" /etc/passwd 2>/dev/null; then
  if command -v useradd >/dev/null 2>&1; then
    # A group of that name may be there already, e.g. `users` or one that an image made.
    if grep -q "^$name:" /etc/group 2>/dev/null; then
      useradd --create-home --shell "$shell" --gid "$name" "$name"
    else
      useradd --create-home --shell "$shell" --user-group "$name"
    fi
  elif command -v adduser >/dev/null 2>&1; then
    # Busybox: -D asks for no password.
    adduser -D -s "$shell" "$name"
  else
    # Neither program: the files themselves, with the first free number.
    id=1000
    while grep -q "^[^:]*:[^:]*:$id:" /etc/passwd /etc/group 2>/dev/null; do id=$((id + 1)); done
    echo "$name:x:$id:$id::/home/$name:$shell" >>/etc/passwd
    grep -q "^$name:" /etc/group 2>/dev/null || echo "$name:x:$id:" >>/etc/group
    [ -e /etc/shadow ] && echo "$name:!:19000:0:99999:7:::" >>/etc/shadow
    mkdir -p "/home/$name"
    chown "$id:$id" "/home/$name"
  fi
fi

if [ "$admin" = admin ]; then
  for group in sudo wheel; do
    grep -q "^$group:" /etc/group 2>/dev/null || continue
    if command -v usermod >/dev/null 2>&1; then usermod -aG "$group" "$name"
    elif command -v addgroup >/dev/null 2>&1; then addgroup "$name" "$group" >/dev/null 2>&1 || :
    elif ! grep -q "^$group:.*[:,]$name\(,\|\$\)" /etc/group; then
      sed -i -e "s/^\($group:[^:]*:[^:]*:\)$/\1$name/;t" -e "s/^\($group:[^:]*:[^:]*:..*\)$/\1,$name/" /etc/group
    fi
    break
  done
  mkdir -p /etc/sudoers.d
  echo "$name ALL=(ALL:ALL) NOPASSWD: ALL" >"/etc/sudoers.d/$name"
  chmod 0440 "/etc/sudoers.d/$name"
  if [ -e /etc/shadow ] && command -v passwd >/dev/null 2>&1; then passwd -d "$name" >/dev/null 2>&1 || :; fi
fi
