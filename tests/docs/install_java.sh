#!/bin/sh
# Java, in which Spark runs; installs it on Debian, as root.
set -eu
command -v java >/dev/null && exit 0
if ! command -v apt-get >/dev/null || [ "$(id -u)" != 0 ]; then
    echo "test-spark: please install java; only on Debian, as root, is that done by itself" >&2
    exit 1
fi
apt-get update -qq
DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends default-jre-headless
