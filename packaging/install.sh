#!/bin/sh
# Installs git-handoff @VERSION@ for this machine from its release, if the checksum is right.
#
#   sh install.sh [PREFIX]      PREFIX defaults to ~/.local
#
# GIT_HANDOFF_SOURCE is another address of the release's files; file:// serves as well.
set -eu
version=@VERSION@
source=${GIT_HANDOFF_SOURCE:-@REPOSITORY@/releases/download/v$version}
prefix=${1:-$HOME/.local}

refuse() {
  echo "error: $1; nothing was installed" >&2
  exit 1
}

case $(uname -s) in
  Linux) system=unknown-linux-gnu ;;
  Darwin) system=apple-darwin ;;
  MINGW* | MSYS*) system=pc-windows-msvc ;;
  *) refuse "there is no program for $(uname -s)" ;;
esac
case $(uname -m) in
  x86_64 | amd64) processor=x86_64 ;;
  aarch64 | arm64) processor=aarch64 ;;
  *) refuse "there is no program for $(uname -m)" ;;
esac
if [ "$system" = unknown-linux-gnu ] && ldd --version 2>&1 | grep -q musl; then
  refuse 'the program needs the GNU C library: build it with cargo install git-handoff'
fi
name=git-handoff-$version-$processor-$system
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

get() {
  curl --silent --show-error --fail --location --retry 3 --output "$work/$1" "$source/$1" || refuse "$source/$1 cannot be fetched"
}

get SHA256SUMS
wanted=$(awk -v name="$name.tar.gz" '$2 == name { print $1 }' "$work/SHA256SUMS")
[ -n "$wanted" ] || refuse "the release has no $name.tar.gz"
get "$name.tar.gz"
if command -v sha256sum >/dev/null; then
  is=$(sha256sum "$work/$name.tar.gz")
else
  is=$(shasum -a 256 "$work/$name.tar.gz")
fi
[ "${is%% *}" = "$wanted" ] || refuse "$name.tar.gz is not what its checksum says"
tar -xzf "$work/$name.tar.gz" -C "$work"
"$work/$name/bin/git-handoff" --version >/dev/null || refuse 'the program does not run here'
echo install.sh >"$work/$name/share/git-handoff/installed-by"
mkdir -p "$prefix"
# A program that runs is replaced, not written into.
rm -f "$prefix/bin/git-handoff"
cp -R "$work/$name/bin" "$work/$name/share" "$prefix"
echo "installed git-handoff $version into $prefix"
case ":$PATH:" in
  *":$prefix/bin:"*) ;;
  *) echo "put $prefix/bin on your PATH, so that git finds it" ;;
esac
