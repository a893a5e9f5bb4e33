#!/bin/sh
# Installs the dependencies where package-lock.json is not the one they were installed from. Uses npm where it is there,
# else Bun, else Deno. Run by `start` and `test`, so that a fresh clone needs no step of its own.
set -eu
cd "$(dirname "$0")/.."

installed=node_modules/.installed-lock.json
if cmp -s package-lock.json "$installed"; then
  exit 0
fi
if command -v npm >/dev/null 2>&1; then
  npm ci --no-audit --no-fund --loglevel=error
elif command -v bun >/dev/null 2>&1; then
  # Bun reads package-lock.json too; a lock file of its own would only go stale.
  bun install --no-save
else
  deno install
fi
cp package-lock.json "$installed"
