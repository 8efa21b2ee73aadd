"""What a machine is told at boot, as files and units, and how that becomes Azure's custom data."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from functools import cached_property

CUSTOM_DATA_BYTES = 65_535
"""Most bytes of custom data, before base64:
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
        """Refuse what a YAML block would not carry unchanged."""
        lines = self.content.split("\n")
        ended = len(lines) > 1 and not lines[-1] and bool(lines[-2])
        if not ended or not lines[0] or lines[0].startswith(" ") or not all(line.isprintable() for line in lines):
            raise ValueError(
                f"{self.path}: want printable lines without tabs, the first neither empty nor indented, one newline at the end"
            )

    @cached_property
    def written(self) -> str:
        """The file as an entry of cloud-init's write_files, built once for all machines that share it."""
        body = "".join(f"    {line}\n" if line else "\n" for line in self.content.split("\n")[:-1])
        return f'- path: {self.path}\n  owner: {self.owner}\n  permissions: "{self.mode}"\n  content: |\n{body}'


@dataclass(frozen=True)
class MachineBoot:
    """Everything one machine is told: role names the machine's kind, enable its units in the order in which they start."""

    role: str
    files: tuple[BootFile, ...]
    enable: tuple[str, ...]

    def file(self, path: str) -> BootFile:
        """File at a path; KeyError where there is none."""
        for item in self.files:
            if item.path == path:
                return item
        raise KeyError(path)


def cloud_config(boot: MachineBoot) -> str:
    """The machine's cloud-init document; its only commands load and enable units, without waiting for them.

    Units order themselves, at this boot as at every later one, so nothing here may be needed twice.
    """
    files = "".join(item.written for item in boot.files)
    enable = ", ".join(("systemctl", "enable", "--now", "--no-block", *boot.enable))
    return f"#cloud-config\nwrite_files:\n{files}runcmd:\n- [systemctl, daemon-reload]\n- [{enable}]\n"


def custom_data(boot: MachineBoot) -> str:
    """The machine's custom data: its cloud-init document in base64, the same for the same boot.

    CustomDataTooLarge where the document exceeds CUSTOM_DATA_BYTES. Never compressed: compressors differ between machines, and Azure
    would be sent a changed model where nothing has changed.
    """
    document = cloud_config(boot).encode()
    if len(document) > CUSTOM_DATA_BYTES:
        raise CustomDataTooLargeError(boot.role, len(document))
    return base64.b64encode(document).decode()
