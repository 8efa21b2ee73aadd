"""Diagnostic settings; nothing is logged: https://learn.microsoft.com/rest/api/monitor/diagnostic-settings."""

from __future__ import annotations

from rehearsal.azure.arm_id import ArmId
from rehearsal.azure.cloud import Cloud
from rehearsal.azure.errors import conflict, invalid
from rehearsal.azure.resource import Json, Resource
from rehearsal.azure.resource_type import ResourceType
from rehearsal.azure.validation import without_nulls

SETTINGS = 5
"""Settings per resource: https://learn.microsoft.com/azure/azure-monitor/platform/diagnostic-settings"""
DESTINATIONS = ("workspaceId", "storageAccountId", "eventHubAuthorizationRuleId", "marketplacePartnerId")


class DiagnosticSetting(ResourceType):
    """Diagnostic setting of any resource."""

    type = "Microsoft.Insights/diagnosticSettings"
    has_provisioning_state = False

    def check(self, cloud: Cloud, arm_id: ArmId, body: Json, previous: Resource | None) -> None:
        """Require a destination, a category to send, and at most five settings per resource."""
        settings = without_nulls(body.get("properties"))
        if not any(settings.get(name) for name in DESTINATIONS):
            raise invalid(f"At least one data sink needs to be specified: {', '.join(DESTINATIONS)}.", "properties", "BadRequest")
        if not settings.get("logs") and not settings.get("metrics"):
            raise invalid("At least one of logs and metrics needs to be specified.", "properties", "BadRequest")
        others = [one for one in cloud.list(arm_id.scope, self.type) if one.id.scope.lower() == arm_id.scope.lower()]
        if previous is None and len(others) >= SETTINGS:
            raise conflict("Conflict", f"The resource has {len(others)} diagnostic settings, of at most {SETTINGS}.", arm_id.scope)

    def blocks_deletion(self, resource: Resource, target: Resource) -> bool:
        """Return False: a destination can be deleted."""
        return False


RESOURCE_TYPES: tuple[ResourceType, ...] = (DiagnosticSetting(),)
