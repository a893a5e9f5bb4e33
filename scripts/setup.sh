#!/bin/sh
# Installs the dependencies where package-lock.json has changed since they were installed. Uses npm where it is there,
# and Bun where it is the only one. Run by `start` and `test`, so that a fresh clone needs no step of its own.
set -eu
cd "$(dirname "$0")/.."

if [ node_modules/.installed -nt package-lock.json ]; then
  exit 0
fi
if command -v npm >/dev/null 2>&1; then
  npm ci --no-audit --no-fund --loglevel=error
else
  # Bun reads package-lock.json too; a lock file of its own would only go stale.
  bun install --no-save
fi
touch node_modules/.installed
