# What the published desktop client calls: an X server without a screen, XFCE, and programs for pictures, mouse, keyboard and VNC.
set -e
export DEBIAN_FRONTEND=noninteractive
apt-get update --quiet
apt-get install --quiet --yes --no-install-recommends \
  xvfb xfce4-session xfwm4 xfdesktop4 xfce4-panel xfce4-settings xfce4-terminal thunar mousepad adwaita-icon-theme \
  dbus-x11 at-spi2-core x11-utils x11-xserver-utils xdg-utils libgtk-3-bin desktop-file-utils fonts-dejavu-core \
  scrot xdotool x11vnc websockify net-tools
# noVNC is a folder of pages; its package wants a Node.js of its own beside that of the base.
fetched=$(mktemp -d)
chmod 777 "$fetched"
(cd "$fetched" && apt-get download --quiet novnc && dpkg-deb -x novnc_*.deb .)
mv "$fetched/usr/share/novnc" /opt/noVNC
rm -rf "$fetched"
apt-get clean
rm -rf /var/lib/apt/lists/*
