#!/bin/sh
# Installs the Debian packages of one group of packages.txt that are missing; with none missing it
# does nothing, in a fraction of a second. Never asks a question.
#   scripts/setup.sh [GROUP]      GROUP: build (the default), wasm, lint or peers
set -eu
cd "$(dirname "$0")/.."
group=${1:-build}

say() { printf 'setup: %s\n' "$*" >&2; }

wanted=$(awk -v group="$group" '$1 !~ /^#/ && $2 == group { print $1 }' packages.txt)
if [ -z "$wanted" ]; then
  say "packages.txt has no group '$group'; its groups are: $(
    awk 'NF && $1 !~ /^#/ { print $2 }' packages.txt | sort -u | paste -sd ' ' -)"
  exit 2
fi

if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
  say "this is not a Debian system, so nothing is installed here. The packages listed in"
  say "packages.txt have to be there under your system's own names:" $wanted
  exit 0
fi

missing=
for package in $wanted; do
  case $(dpkg-query --show --showformat=' ${db:Status-Status} ' "$package" 2>/dev/null || :) in
    *" installed "*) ;;
    *) missing="$missing $package" ;;
  esac
done
[ -n "$missing" ] || exit 0
say "missing:$missing"

if [ "$(id -u)" = 0 ]; then
  as_root() { "$@"; }
elif command -v sudo >/dev/null && { [ -t 0 ] || sudo -n true 2>/dev/null; }; then
  as_root() { sudo "$@"; }
else
  say "installing packages needs root. Run this as root, or as a user who may use sudo without"
  say "a password; or have an administrator run:  apt-get install$missing"
  exit 1
fi

apt_get() {
  as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout=600 "$@"
}
install_missing() { apt_get install -y --no-install-recommends $missing; }

# apt knows a package's version when its lists are there; old lists may name files that are gone.
known() {
  for package in $missing; do
    LC_ALL=C apt-cache policy "$package" 2>/dev/null | grep -q 'Candidate: [0-9]' || return 1
  done
}
if ! known || ! install_missing; then
  apt_get update
  install_missing
fi
