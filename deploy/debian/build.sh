#!/bin/sh
# Builds a Debian package of the single binary for this machine: sh deploy/debian/build.sh [FOLDER]. Needs dpkg-deb. Writes
# FOLDER/sluice_VERSION_ARCH.deb (default: dist).
set -eu
cd "$(dirname "$0")/../.."
out=${1:-dist}
[ -x dist/sluice ] || npm run --silent build
version=$(dist/sluice --version)
architecture=$(dpkg --print-architecture)
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
chmod 755 "$root"

put() {
  mkdir -p "$root$(dirname "$2")"
  install -m "${3:-644}" "$1" "$root$2"
}

put dist/sluice /usr/bin/sluice 755
put NOTICE /usr/share/doc/sluice/NOTICE
mkdir -p "$root/usr/lib/systemd/system" "$root/usr/share/man/man1" "$root/usr/share/bash-completion/completions" \
  "$root/usr/share/zsh/vendor-completions" "$root/usr/share/fish/vendor_completions.d"
sed 's#/usr/local/bin/#/usr/bin/#' deploy/systemd/sluice.service >"$root/usr/lib/systemd/system/sluice.service"
put deploy/systemd/sluice.socket /usr/lib/systemd/system/sluice.socket
dist/sluice man | gzip -9n >"$root/usr/share/man/man1/sluice.1.gz"
dist/sluice completions bash >"$root/usr/share/bash-completion/completions/sluice"
dist/sluice completions zsh >"$root/usr/share/zsh/vendor-completions/_sluice"
dist/sluice completions fish >"$root/usr/share/fish/vendor_completions.d/sluice.fish"
{
  echo "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/"
  echo
  echo "Files: *"
  echo "Copyright: 2026 The Sluice contributors"
  echo "License: Apache-2.0"
  echo " On Debian systems, the full text is in /usr/share/common-licenses/Apache-2.0."
  echo " The packages that the binary contains are listed in /usr/share/doc/sluice/NOTICE."
} >"$root/usr/share/doc/sluice/copyright"
{
  echo "sluice ($version) unstable; urgency=medium"
  echo
  echo "  * See CHANGELOG.md of the source for the changes."
  echo
  echo " -- The Sluice contributors <sluice@example.org>  $(date -R)"
} | gzip -9n >"$root/usr/share/doc/sluice/changelog.gz"
# The runtime is compiled by others, and the program is appended to it: stripping would remove the program.
mkdir -p "$root/usr/share/lintian/overrides"
for tag in unstripped-binary-or-object hardening-no-pie hardening-no-relro "embedded-library *"; do
  echo "sluice: $tag"
done >"$root/usr/share/lintian/overrides/sluice"
find "$root/usr" -type d -exec chmod 755 {} +
find "$root/usr" -type f ! -name sluice -exec chmod 644 {} +

mkdir -p "$root/DEBIAN"
cat >"$root/DEBIAN/control" <<CONTROL
Package: sluice
Version: $version
Architecture: $architecture
Maintainer: The Sluice contributors <sluice@example.org>
Installed-Size: $(du -sk "$root/usr" | cut -f1)
Pre-Depends: init-system-helpers (>= 1.54~)
Depends: libc6 (>= 2.27)
Section: video
Priority: optional
Description: plays and broadcasts over the BitTorrent network
 Sluice is an HTTP server that plays BitTorrent content and live streams in
 any video player while they download. It verifies every piece and serves
 MPEG-TS, HLS or the original file to the devices of the local network.
CONTROL
cat >"$root/DEBIAN/postinst" <<'SCRIPT'
#!/bin/sh
set -e
if [ "$1" = configure ] && [ -d /run/systemd/system ]; then
  deb-systemd-helper enable sluice.service >/dev/null
  deb-systemd-invoke restart sluice.service
fi
SCRIPT
cat >"$root/DEBIAN/postrm" <<'SCRIPT'
#!/bin/sh
set -e
if [ "$1" = purge ] && command -v deb-systemd-helper >/dev/null; then
  deb-systemd-helper purge sluice.service >/dev/null
fi
SCRIPT
cat >"$root/DEBIAN/prerm" <<'SCRIPT'
#!/bin/sh
set -e
if [ "$1" = remove ] && [ -d /run/systemd/system ]; then
  deb-systemd-invoke stop sluice.service
fi
SCRIPT
chmod 755 "$root/DEBIAN/postinst" "$root/DEBIAN/postrm" "$root/DEBIAN/prerm"
mkdir -p "$out"
# xz takes minutes for the binary and saves a tenth of it.
dpkg-deb -Zgzip --root-owner-group --build "$root" "$out" >/dev/null
echo "$out/sluice_${version}_$architecture.deb"
