#!/bin/sh
# Fills the folder $2 with all files that the single binary $1 needs to run: the binary, the C library, a user, and a data folder.
# The image consists of these files alone.
set -eu
binary=$1
root=$2

# The runtime needs /proc and /dev, which containers mount.
mkdir -p "$root/usr/bin" "$root/etc" "$root/data" "$root/tmp" "$root/proc" "$root/dev"
install -m 755 "$binary" "$root/usr/bin/sluice"
# Only lines with a path: the kernel provides the rest.
ldd "$binary" | grep -o '/[^ ]*' | while read -r library; do
  mkdir -p "$root$(dirname "$library")"
  cp -L "$library" "$root$library"
done
echo 'sluice:x:10001:10001::/data:/sbin/nologin' >"$root/etc/passwd"
echo 'sluice:x:10001:' >"$root/etc/group"
chown 10001:10001 "$root/data"
chmod 1777 "$root/tmp"
