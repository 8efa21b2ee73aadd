#!/bin/sh
# Decides whether this etcd member may start: not with an empty disk once it has been a member.
# A member that starts anew has forgotten its votes and its data; under its old name it can undo what the ring agreed on.
set -eu

data=${GPUFLEET_ETCD_DATA:-/var/lib/etcd/data}
marker=${GPUFLEET_ETCD_MARKER:-/var/lib/gpufleet/etcd-member}
# In /run, so that leave to join lasts for one boot: the next redeploy empties the disk again.
join=${GPUFLEET_ETCD_JOIN:-/run/gpufleet/etcd-join.env}
pause=${GPUFLEET_ETCD_PAUSE:-10}

remember() {
  mkdir -p "$(dirname "$marker")"
  : >"$marker"
}

case "${1:-}" in
  started)
    remember
    rm -f "$join"
    ;;
  may-start)
    turn=0
    while [ ! -d "$data/member" ] && [ -e "$marker" ] && [ ! -e "$join" ]; do
      if [ $((turn % 30)) -eq 0 ]; then
        echo "gpufleet-etcd-guard: this machine has been an etcd member and its disk is empty; it waits: replace the member with playbooks/etcd-replace.yml" >&2
      fi
      turn=$((turn + 1))
      sleep "$pause"
    done
    if [ -d "$data/member" ]; then
      remember
    fi
    ;;
  *)
    echo "gpufleet-etcd-guard: say may-start or started" >&2
    exit 64
    ;;
esac
