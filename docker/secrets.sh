#!/usr/bin/env bash
# secrets.sh [DIRECTORY]: make a certificate for the gateway and two API keys in DIRECTORY, which is
# docker/secrets by default. For a laptop and for tests; elsewhere put your own certificate and keys
# there, under the same names.
set -euo pipefail
target=${1:-$(dirname "$0")/secrets}
if [[ -e $target ]]; then
    echo "$target is there already; remove it to make new ones"
    exit 0
fi
# The containers' users may read the files, which are mounted one by one; no other user of this
# machine can enter their directory.
made=$(mktemp -d "$target.XXXXXX")
trap 'rm -rf "$made"' EXIT
openssl req -x509 -newkey rsa:2048 -nodes -days 90 -subj /CN=localhost \
    -addext "subjectAltName=DNS:localhost,DNS:gateway,IP:127.0.0.1" \
    -keyout "$made/tls_key" -out "$made/tls_certificate" 2>/dev/null
for name in client operator; do
    openssl rand -hex 32 > "$made/$name.key"
    echo "\"~^(?i:bearer) +$(cat "$made/$name.key")\$\" $name;" >> "$made/api_keys"
done
chmod 444 "$made"/*
mv "$made" "$target"
echo "made $target: tls_certificate, tls_key, api_keys, client.key, operator.key"
