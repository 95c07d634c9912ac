#!/bin/sh
# Chromium, and npm for what packs and checks the pages; installs them on Debian, as root.
set -eu
missing=""
command -v chromium >/dev/null || missing="chromium"
command -v npm >/dev/null || missing="$missing npm"
[ -n "$missing" ] || exit 0
if ! command -v apt-get >/dev/null || [ "$(id -u)" != 0 ]; then
    echo "browser-test: please install $missing; only on Debian, as root, is that done by itself" >&2
    exit 1
fi
apt-get update -qq
# shellcheck disable=SC2086
DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing fonts-dejavu-core
