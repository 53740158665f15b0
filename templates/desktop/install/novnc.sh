# The client starts noVNC by this name, with the options of its own proxy script.
set -e
mkdir -p /opt/noVNC/utils
cat > /opt/noVNC/utils/novnc_proxy <<'SCRIPT'
#!/bin/sh
# novnc_proxy --vnc HOST:PORT --listen PORT --web FOLDER
while [ $# -gt 1 ]; do
  case $1 in
    --vnc) vnc=$2 ;;
    --listen) listen=$2 ;;
    --web) web=$2 ;;
  esac
  shift 2
done
exec websockify --web "${web:-/opt/noVNC}" "${listen:-6080}" "${vnc:-localhost:5900}"
SCRIPT
chmod 755 /opt/noVNC/utils/novnc_proxy
# Whose session asks for a password locks a screen that nobody has.
rm -f /etc/xdg/autostart/*screensaver*.desktop /etc/xdg/autostart/light-locker.desktop
