# Firefox isolates its pages by user namespaces, which sandboxes on crun do not have: the sandbox itself is the wall.
set -e
export DEBIAN_FRONTEND=noninteractive
apt-get update --quiet
apt-get install --quiet --yes --no-install-recommends firefox-esr
apt-get clean
rm -rf /var/lib/apt/lists/*
xdg-settings set default-web-browser firefox-esr.desktop || true
