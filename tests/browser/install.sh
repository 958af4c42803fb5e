#!/bin/sh
# Makes sure that there is a browser for `pytest -m browser`: Debian's Chromium, installed when we may.
set -eu

for name in chromium chromium-browser; do
  if command -v "$name" >/dev/null 2>&1; then
    exit 0
  fi
done

if ! command -v apt-get >/dev/null 2>&1; then
  echo "tests/browser: no chromium is on the PATH, and no apt-get that could install it; install Chromium by hand" >&2
  exit 1
fi
if [ "$(id -u)" -ne 0 ]; then
  echo "tests/browser: no chromium is on the PATH; run 'sudo apt-get install chromium fonts-dejavu-core', or this as root" >&2
  exit 1
fi

export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
apt-get install -y -qq --no-install-recommends chromium fonts-dejavu-core >/dev/null
