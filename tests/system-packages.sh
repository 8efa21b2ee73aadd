#!/bin/sh
# Install the system packages that tests use, as root on Debian. On other systems, print which are missing.
set -eu
PACKAGES="cloud-init systemd shellcheck iptables iproute2 ipset iperf3 tcpdump curl prometheus"
missing=""
for package in $PACKAGES; do
  dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' || missing="$missing $package"
done
[ -n "$missing" ] || exit 0
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
  echo "set-up: installing Debian packages:$missing"
  export DEBIAN_FRONTEND=noninteractive
  apt-get update -qq
  # shellcheck disable=SC2086 # a list of names is meant
  apt-get install -y -qq --no-install-recommends $missing >/dev/null
else
  echo "set-up: tests that use these Debian packages will be skipped, with the reason:$missing"
fi
