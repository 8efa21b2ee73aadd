#!/bin/sh
# Imports the image's container images: containerd's store is on local NVMe, which a new machine brings empty.
set -eu

for archive in "${GPUFLEET_IMAGES:-/opt/gpufleet/images}"/*.tar; do
  [ -e "$archive" ] || continue
  ctr --namespace k8s.io images import "$archive" >/dev/null
  echo "gpufleet-preload-images: $(basename "$archive")"
done
