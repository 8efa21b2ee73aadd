"""Names of VM sizes outside the plan's table give vCPUs and the family of the quota."""

from __future__ import annotations

import pytest
from azure.mgmt.compute.models import VirtualMachineSizeTypes

from components.plan.vm_sizes import VM_SIZES
from rehearsal.azure.vm_size_names import NamedSize, vm_size


def test_every_size_that_the_sdk_or_the_plan_names_is_known_in_any_capitals() -> None:
    names = (*(one.value for one in VirtualMachineSizeTypes), *VM_SIZES)
    unknown = [name for name in names if vm_size(name) is None or vm_size(name.upper()) is None]
    assert unknown == []
    assert vm_size("STANDARD_D4S_V5") is VM_SIZES["Standard_D4s_v5"]


@pytest.mark.parametrize(
    ("name", "vcpus", "family"),
    [
        ("Standard_D2s_v3", 2, "standardDSv3Family"),
        ("Standard_D16as_v4", 16, "standardDASv4Family"),
        ("Standard_DS1_v2", 1, "standardDSv2Family"),
        ("Standard_DS14-8_v2", 8, "standardDSv2Family"),
        ("Standard_D4", 8, "standardDFamily"),
        ("Basic_A4", 8, "standardAFamily"),
        ("Standard_A2m_v2", 2, "standardAMv2Family"),
        ("Standard_HB120-16rs_v3", 16, "standardHBRSv3Family"),
        ("Standard_NC4as_T4_v3", 4, "standardNCAST4v3Family"),
        ("Standard_ND128isr_GB300_v6", 128, "standardNDISRGB300v6Family"),
        ("Standard_M176s_3_v3", 176, "standardMS3v3Family"),
    ],
)
def test_a_name_gives_vcpus_and_family(name: str, vcpus: int, family: str) -> None:
    size = vm_size(name)
    assert isinstance(size, NamedSize)
    assert (size.vcpus, size.family) == (vcpus, family)


@pytest.mark.parametrize(
    "name",
    [
        "",
        "Standard_",
        "Standard_Small",
        "D2s_v3",
        "Standard_D0s_v3",
        "Standard_D2s_v33",
        "Standard_D2s_v3x",
        "Standard_D6",
        "Standard_Q2_v2",
    ],
)
def test_what_is_no_name_of_a_size_is_unknown(name: str) -> None:
    assert vm_size(name) is None
