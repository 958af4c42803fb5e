#!/bin/sh
# Makes sure that there are Prometheus and Alertmanager for `pytest -m monitoring`: Debian's, installed when we may.
set -eu

missing=""
for name in prometheus promtool amtool; do
  command -v "$name" >/dev/null 2>&1 || missing="$missing $name"
done
[ -n "$missing" ] || exit 0

if ! command -v apt-get >/dev/null 2>&1; then
  echo "deploy/prometheus: not on the PATH:$missing, and no apt-get that could install it; install them by hand" >&2
  exit 1
fi
if [ "$(id -u)" -ne 0 ]; then
  echo "deploy/prometheus: not on the PATH:$missing; run 'sudo apt-get install prometheus prometheus-alertmanager'," \
    "or this as root" >&2
  exit 1
fi

export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
apt-get install -y -qq --no-install-recommends prometheus prometheus-alertmanager >/dev/null
