"""Shapes of bodies without an official client among gpufleet's dependencies: management locks and diagnostic settings."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from rehearsal.azure.shapes import Choice, ListOf, ObjectOf, Plain, Property


def _resource(name: str, properties: Mapping[str, Property]) -> ObjectOf:
    inner = ObjectOf(f"{name}Properties", lambda: properties)
    return ObjectOf(name, lambda: {"properties": Property(inner, required=True)}, flattened=True)


LOCK: Mapping[str, Property] = MappingProxyType(
    {
        "level": Property(Choice("LockLevel", ("NotSpecified", "CanNotDelete", "ReadOnly")), required=True),
        "notes": Property(Plain.STRING),
        "owners": Property(ListOf(ObjectOf("ManagementLockOwner", lambda: {"applicationId": Property(Plain.STRING)}))),
    }
)
"""https://learn.microsoft.com/rest/api/resources/management-locks/create-or-update-by-scope"""

_RETENTION: Mapping[str, Property] = MappingProxyType(
    {"days": Property(Plain.INTEGER, required=True), "enabled": Property(Plain.BOOLEAN, required=True)}
)
_STREAM: Mapping[str, Property] = MappingProxyType(
    {
        "category": Property(Plain.STRING),
        "enabled": Property(Plain.BOOLEAN, required=True),
        "retentionPolicy": Property(ObjectOf("RetentionPolicy", lambda: _RETENTION)),
    }
)
DIAGNOSTIC_SETTING: Mapping[str, Property] = MappingProxyType(
    {
        **{
            name: Property(Plain.STRING)
            for name in (
                "eventHubAuthorizationRuleId",
                "eventHubName",
                "logAnalyticsDestinationType",
                "marketplacePartnerId",
                "serviceBusRuleId",
                "storageAccountId",
                "workspaceId",
            )
        },
        "logs": Property(ListOf(ObjectOf("LogSettings", lambda: {**_STREAM, "categoryGroup": Property(Plain.STRING)}))),
        "metrics": Property(ListOf(ObjectOf("MetricSettings", lambda: {**_STREAM, "timeGrain": Property(Plain.STRING)}))),
    }
)
"""https://learn.microsoft.com/rest/api/monitor/diagnostic-settings/create-or-update"""

WITHOUT_CLIENT: Mapping[str, ObjectOf] = MappingProxyType(
    {
        "Microsoft.Authorization/locks": _resource("ManagementLockObject", LOCK),
        "Microsoft.Insights/diagnosticSettings": _resource("DiagnosticSettingsResource", DIAGNOSTIC_SETTING),
    }
)
"""Shapes by resource type."""
