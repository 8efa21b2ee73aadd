"""Files and units of a machine at boot, and their conversion to Azure's custom data."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from functools import cached_property

CUSTOM_DATA_BYTES = 65_535
"""Maximum bytes of custom data, before base64:
https://learn.microsoft.com/dotnet/api/azure.resourcemanager.compute.models.virtualmachineosprofile.customdata"""


class CustomDataTooLargeError(ValueError):
    """A boot document that Azure would refuse; value and bound in bytes, where is the machine's role."""

    def __init__(self, where: str, value: int) -> None:
        self.where, self.value, self.bound = where, value, CUSTOM_DATA_BYTES
        self.remedy = "move a script or a configuration file that no plan decides into the machine's image"
        super().__init__(f"custom data of {where} takes {value} bytes; Azure takes {self.bound}: {self.remedy}")


@dataclass(frozen=True)
class BootFile:
    """One file on a machine: text that ends with a newline, its mode in octal and its owner."""

    path: str
    content: str
    mode: str = "0644"
    owner: str = "root:root"

    def __post_init__(self) -> None:
        """Reject content that a YAML block would change."""
        lines = self.content.split("\n")
        ended = len(lines) > 1 and not lines[-1] and bool(lines[-2])
        if not ended or not lines[0] or lines[0].startswith(" ") or not all(line.isprintable() for line in lines):
            raise ValueError(
                f"{self.path}: needs printable lines without tabs, the first neither empty nor indented, and one newline at the end"
            )

    @cached_property
    def written(self) -> str:
        """Return the file as an entry of cloud-init's write_files, cached for all machines that share it."""
        body = "".join(f"    {line}\n" if line else "\n" for line in self.content.split("\n")[:-1])
        return f'- path: {self.path}\n  owner: {self.owner}\n  permissions: "{self.mode}"\n  content: |\n{body}'


@dataclass(frozen=True)
class MachineBoot:
    """All boot files of one machine: role is the machine's role, enable lists its units in the order in which they start."""

    role: str
    files: tuple[BootFile, ...]
    enable: tuple[str, ...]

    def file(self, path: str) -> BootFile:
        """Return the file at a path; raise KeyError if there is none."""
        for item in self.files:
            if item.path == path:
                return item
        raise KeyError(path)


def cloud_config(boot: MachineBoot) -> str:
    """Return the machine's cloud-init document; its only commands load and enable units, without waiting for them.

    The units define their order at each boot; the commands run at the first boot only.
    """
    files = "".join(item.written for item in boot.files)
    enable = ", ".join(("systemctl", "enable", "--now", "--no-block", *boot.enable))
    return f"#cloud-config\nwrite_files:\n{files}runcmd:\n- [systemctl, daemon-reload]\n- [{enable}]\n"


def custom_data(boot: MachineBoot) -> str:
    """Return the machine's custom data: its cloud-init document in base64, identical for identical boot files.

    Raise CustomDataTooLargeError above CUSTOM_DATA_BYTES. The document is not compressed: compressors differ between machines, so that an
    unchanged document could change the custom data.
    """
    document = cloud_config(boot).encode()
    if len(document) > CUSTOM_DATA_BYTES:
        raise CustomDataTooLargeError(boot.role, len(document))
    return base64.b64encode(document).decode()
