"""Authentication configuration of the API server: people with Entra ID, anonymous requests on the health endpoints only."""

from __future__ import annotations

import yaml

from components.plan.access import ENTRA_PREFIX
from components.plan.model import RegionPlan

HEALTH_PATHS = ("/livez", "/readyz", "/healthz")
"""Paths for anonymous requests, since the load balancer's probe has no identity."""
LOGIN_EXTRA = "gpufleet.io/login"


def configuration(region: RegionPlan) -> str:
    """Return the AuthenticationConfiguration as YAML: https://kubernetes.io/docs/reference/access-authn-authz/authentication/

    A person's user name is the object id, which unlike a login name is never reused; the audit log also has the login name. Groups are
    object ids. Entra ID omits them for members of more than 200 groups, unless the application sends only groups that are assigned to it: https://learn.microsoft.com/entra/identity-platform/id-token-claims-reference
    """
    access = region.spec.access
    person = {
        "issuer": {"url": f"https://login.microsoftonline.com/{access.tenant}/v2.0", "audiences": [access.client_id]},
        "claimMappings": {
            "username": {"claim": "oid", "prefix": ENTRA_PREFIX},
            "groups": {"claim": "groups", "prefix": ENTRA_PREFIX},
            "extra": [{"key": LOGIN_EXTRA, "valueExpression": 'has(claims.preferred_username) ? claims.preferred_username : ""'}],
        },
    }
    return yaml.safe_dump(
        {
            "apiVersion": "apiserver.config.k8s.io/v1",
            "kind": "AuthenticationConfiguration",
            "jwt": [person],
            "anonymous": {"enabled": True, "conditions": [{"path": path} for path in HEALTH_PATHS]},
        },
        sort_keys=False,
        width=200,
    )
