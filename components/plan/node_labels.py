"""Labels in which a node reports its image and boot files, and annotations of cordons and checkpoints.

A kubelet writes its labels only when it creates its Node. The Node of a reimaged machine must therefore be deleted before the machine
joins again, or it reports the previous image:
https://kubernetes.io/docs/concepts/architecture/nodes/#self-registration-of-nodes
"""

from __future__ import annotations

POOL_LABEL = "gpufleet.io/pool"
"""Label of a node: its pool."""
IMAGE_LABEL = "gpufleet.io/image"
"""Label of a node: the image that it booted from, as image_label writes it."""
BOOT_DIGEST_LABEL = "gpufleet.io/boot-digest"
"""Label of a node: digest of the boot files that it booted with."""
BOOT_DIGEST_DIGITS = 32
"""Hexadecimal digits of the digest: a label value has at most 63 characters, and SHA-256 has 64 digits:
https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/#syntax-and-character-set"""
CORDONED_BY = "gpufleet.io/cordoned-by"
"""Annotation of a cordoned node: the owner of the cordon."""
CHECKPOINTED_AT = "gpufleet.io/checkpointed-at"
"""Annotation of a PodGroup or a pod: time of the job's last checkpoint in RFC 3339, for example 2026-11-23T14:00:00Z. The job writes it."""


def image_label(pin: str) -> str:
    """Return an image pin as a label value, which may not contain @: name_version."""
    return pin.replace("@", "_")
