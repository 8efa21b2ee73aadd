"""Response bodies for subscriptions, providers and locations."""

from __future__ import annotations

from rehearsal.arm.url_paths import LocationPath, SubscriptionPath
from rehearsal.azure.api_versions import api_versions
from rehearsal.azure.capacity import capacity_of
from rehearsal.azure.cloud import Cloud
from rehearsal.azure.errors import AzureError, not_modelled
from rehearsal.azure.resource import Json


def subscription_body(cloud: Cloud, what: SubscriptionPath) -> Json:
    """Return the subscription itself, its locations or its providers; raise AzureError if it does not exist."""
    if what.subscription.lower() not in cloud.subscriptions:
        raise AzureError(404, "SubscriptionNotFound", f"The subscription '{what.subscription}' could not be found.")
    match what.what:
        case "":
            return _subscription(cloud, what.subscription)
        case "locations":
            return {"value": [_location(what.subscription, name) for name in _locations(cloud, what.subscription)]}
        case "providers" if what.name:
            return _provider(cloud, what.subscription, what.name)
        case "providers":
            names = sorted({kind.type.partition("/")[0] for kind in cloud.resource_types.values()})
            return {"value": [_provider(cloud, what.subscription, name) for name in names]}
        case _:
            raise not_modelled(f"GET subscriptions/{what.what}", what.what)


def subscriptions_body(cloud: Cloud) -> Json:
    """Return a list of every subscription."""
    return {"value": [_subscription(cloud, one) for one in sorted(cloud.subscriptions)]}


def tenants_body(cloud: Cloud) -> Json:
    """Return a list with the only tenant."""
    return {"value": [{"id": f"/tenants/{cloud.tenant}", "tenantId": cloud.tenant, "tenantCategory": "Home", "displayName": "embedded"}]}


def check_location_path(what: LocationPath) -> None:
    """Raise AzureError NotModelled for another list of a location than the usage of compute."""
    if (what.provider.lower(), what.what) != ("microsoft.compute", "usages"):
        raise not_modelled(f"GET {what.provider}/{'locations/' if what.location else ''}{what.what}", what.what)


def location_body(cloud: Cloud, what: LocationPath) -> Json:
    """Return usage and quota of a provider in a location. Raises AzureError."""
    if what.subscription.lower() not in cloud.subscriptions:
        raise AzureError(404, "SubscriptionNotFound", f"The subscription '{what.subscription}' could not be found.")
    return {"value": capacity_of(cloud).usages(cloud, what.subscription, what.location)}


def _subscription(cloud: Cloud, subscription: str) -> Json:
    return {
        "id": f"/subscriptions/{subscription}",
        "subscriptionId": subscription,
        "tenantId": cloud.tenant,
        "displayName": f"embedded {subscription[:8]}",
        "state": "Enabled",
        "authorizationSource": "RoleBased",
        "subscriptionPolicies": {"quotaId": "Embedded", "spendingLimit": "Off"},
    }


def _locations(cloud: Cloud, subscription: str) -> list[str]:
    """Return the locations in which the subscription has resources."""
    prefix = f"/subscriptions/{subscription.lower()}/"
    return sorted({one.location for key, one in cloud.resources.items() if key.startswith(prefix) and one.location not in ("", "global")})


def _location(subscription: str, name: str) -> Json:
    return {"id": f"/subscriptions/{subscription}/locations/{name}", "name": name, "displayName": name, "regionalDisplayName": name}


def _provider(cloud: Cloud, subscription: str, name: str) -> Json:
    """Return a provider with its resource types and their API versions, newest first."""
    types = [kind.type for kind in cloud.resource_types.values() if kind.type.partition("/")[0].lower() == name.lower()]
    if not types:
        raise AzureError(404, "InvalidResourceNamespace", f"The resource namespace '{name}' is invalid.")
    namespace = types[0].partition("/")[0]
    return {
        "id": f"/subscriptions/{subscription}/providers/{namespace}",
        "namespace": namespace,
        "registrationState": "Registered",
        "registrationPolicy": "RegistrationRequired",
        "resourceTypes": [
            {
                "resourceType": one.partition("/")[2],
                "locations": [],
                "apiVersions": list(reversed(api_versions(one))),
                "capabilities": "None",
            }
            for one in sorted(types)
        ],
    }
