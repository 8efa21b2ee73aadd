#!/bin/sh
# Decides whether this etcd member may start: not with an empty disk once it has been a member, nor where a ring runs without it.
# A member that starts anew has forgotten its votes and its data; under its old name it can undo what the ring agreed on. Two new members
# beside a ring of one would be a quorum of their own, and found a second, empty ring.
set -eu

data=${GPUFLEET_ETCD_DATA:-/var/lib/etcd/data}
marker=${GPUFLEET_ETCD_MARKER:-/var/lib/gpufleet/etcd-member}
# In /run, so that leave to join lasts for one boot: the next redeploy empties the disk again.
join=${GPUFLEET_ETCD_JOIN:-/run/gpufleet/etcd-join.env}
pause=${GPUFLEET_ETCD_PAUSE:-10}
ring=${GPUFLEET_ETCD_RING:-/usr/local/sbin/gpufleet-etcd-ring}

remember() {
  mkdir -p "$(dirname "$marker")"
  : >"$marker"
}

# Why this machine may not start, in $why; fails where it may.
must_wait() {
  if [ -d "$data/member" ] || [ -e "$join" ]; then
    return 1
  elif [ -e "$marker" ]; then
    why="this machine has been an etcd member and its disk is empty"
  elif why=$("$ring" "$@"); then
    return 1
  fi
}

case "${1:-}" in
  started)
    remember
    rm -f "$join"
    ;;
  may-start)
    shift
    turn=0
    while must_wait "$@"; do
      if [ $((turn % 30)) -eq 0 ]; then
        echo "gpufleet-etcd-guard: $why; it waits. One member at a time, while 'etcdctl endpoint health --cluster' finds a quorum:" \
          "'etcdctl member remove' the old one if listed, 'etcdctl member add NAME --learner --peer-urls=URL', write of the lines that it" \
          "prints ETCD_INITIAL_CLUSTER and ETCD_INITIAL_CLUSTER_STATE=existing, and no others (etcd refuses what its flags say too), to $join" \
          "here; once it has caught up, 'etcdctl member promote'" >&2
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
