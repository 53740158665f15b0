# Installs packages of the distribution where its mirror has them: `debian.sh r-cran-irkernel`. Where there is no such mirror, the
# template goes without, and says so in its build's log.
set -e
export DEBIAN_FRONTEND=noninteractive
if ! command -v apt-get > /dev/null || ! apt-get update --quiet || ! apt-cache show "$@" > /dev/null; then
  echo "Left out, as no mirror of this distribution has it: $*"
  exit 0
fi
apt-get install --quiet --yes --no-install-recommends "$@"
apt-get clean
rm -rf /var/lib/apt/lists/*
