"""Azure locations with availability zones, and the zones; a region needs zones for etcd and its front ends."""

from __future__ import annotations

from components.spec.pool import Zone

ZONAL_LOCATIONS = (
    "australiaeast",
    "austriaeast",
    "belgiumcentral",
    "brazilsouth",
    "canadacentral",
    "centralindia",
    "centralus",
    "chilecentral",
    "denmarkeast",
    "eastasia",
    "eastus",
    "eastus2",
    "francecentral",
    "germanywestcentral",
    "indonesiacentral",
    "israelcentral",
    "italynorth",
    "japaneast",
    "japanwest",
    "koreacentral",
    "malaysiawest",
    "mexicocentral",
    "newzealandnorth",
    "northeurope",
    "norwayeast",
    "polandcentral",
    "qatarcentral",
    "southafricanorth",
    "southcentralus",
    "southeastasia",
    "spaincentral",
    "swedencentral",
    "switzerlandnorth",
    "uaenorth",
    "uksouth",
    "westeurope",
    "westus2",
    "westus3",
)
"""Public Azure's locations with availability zones: https://learn.microsoft.com/azure/reliability/regions-list"""


ALL_ZONES = tuple(zone.value for zone in Zone)
"""Zones of every zone-redundant front end, public address and public prefix."""
