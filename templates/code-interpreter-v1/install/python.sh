# Installs the Python packages of a lock file for everybody: `python.sh install/requirements.txt`. By uv, which takes seconds for what
# takes pip minutes; pip gets uv, and nothing of it stays.
set -e
pip install --no-cache-dir --quiet --require-hashes -r install/uv.txt
export SSL_CERT_FILE="${SSL_CERT_FILE:-/etc/ssl/certs/ca-certificates.crt}"
uv pip install --system --no-cache --compile-bytecode --no-progress --require-hashes -r "$1"
pip uninstall --quiet --yes uv
