"""Settings of the provider, and the changes of settings that replace all of its objects.

https://www.pulumi.com/registry/packages/kubernetes/api-docs/provider/
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from lifecycle.kubernetes_api.kubeconfig import ApiAccess, KubeconfigError, parse
from rehearsal.program.graph import reveal
from rehearsal.program.pulumi_values import Json, has_unknown
from rehearsal.pulumi_cli.providers.provider_interface import CheckFailure, DiffResult

IDENTIFIER = "clusterIdentifier"
CLUSTER_SETTINGS = ("kubeconfig", "context", "cluster")
"""Settings that together identify the cluster."""
TEXTS = (*CLUSTER_SETTINGS, "namespace", IDENTIFIER)
FLAGS: Mapping[str, str] = {
    "deleteUnreachable": "PULUMI_K8S_DELETE_UNREACHABLE",
    "skipUpdateUnreachable": "PULUMI_K8S_SKIP_UPDATE_UNREACHABLE",
    "enablePatchForce": "PULUMI_K8S_ENABLE_PATCH_FORCE",
    "upsertExistingObjects": "PULUMI_K8S_UPSERT_EXISTING_OBJECTS",
    "enableConfigMapMutable": "PULUMI_K8S_ENABLE_CONFIGMAP_MUTABLE",
    "enableSecretMutable": "PULUMI_K8S_ENABLE_SECRET_MUTABLE",
}
"""Boolean settings, each with the environment variable that is its default."""
IGNORED_SETTINGS = frozenset(
    {"suppressDeprecationWarnings", "suppressHelmHookWarnings", "kubeClientSettings", "version", "pluginDownloadURL"}
)
"""Settings without an effect in a rehearsal."""
SERVER_SIDE_APPLY = "enableServerSideApply"
UNSUPPORTED_SETTINGS = frozenset({"alwaysRender", "helmReleaseSettings", "renderYamlToDirectory", "strictMode"})
KNOWN_SETTINGS = frozenset({*TEXTS, *FLAGS, *IGNORED_SETTINGS, SERVER_SIDE_APPLY, *UNSUPPORTED_SETTINGS})
BOOLEANS = ("true", "false")


@dataclass(frozen=True)
class ProviderSettings:
    """A valid configuration: kubeconfig is its text or a path, texts are "" where they are not set."""

    kubeconfig: str = field(default="", repr=False)
    context: str = ""
    cluster: str = ""
    namespace: str = ""
    delete_unreachable: bool = False
    skip_update_unreachable: bool = False
    patch_force: bool = False
    upsert: bool = False
    mutable: frozenset[str] = frozenset()

    def access(self) -> ApiAccess:
        """Return the cluster's address and credentials; KubeconfigError."""
        text, where, folder = _document(self.kubeconfig)
        return parse(text, where, folder, context=self.context, cluster=self.cluster)


def read_settings(config: Mapping[str, Any], environment: Mapping[str, str]) -> ProviderSettings:
    """Return the settings of a valid configuration."""
    plain = reveal(config)
    flags = {key: _boolean_text(plain.get(key, environment.get(variable, ""))) == "true" for key, variable in FLAGS.items()}
    kinds = (("ConfigMap", "enableConfigMapMutable"), ("Secret", "enableSecretMutable"))
    return ProviderSettings(
        **{key: str(plain.get(key, "")) for key in (*CLUSTER_SETTINGS, "namespace")},
        delete_unreachable=flags["deleteUnreachable"],
        skip_update_unreachable=flags["skipUpdateUnreachable"],
        patch_force=flags["enablePatchForce"],
        upsert=flags["upsertExistingObjects"],
        mutable=frozenset(kind for kind, key in kinds if flags[key]),
    )


def setting_failures(config: Mapping[str, Any]) -> Iterator[CheckFailure]:
    """Yield the errors in a configuration, in which values may be secret or unknown."""
    plain = reveal(config)
    for key, value in plain.items():
        if key not in KNOWN_SETTINGS:
            near = difflib.get_close_matches(key, KNOWN_SETTINGS, 1)
            yield CheckFailure(key, f"{key} is no setting of this provider{f'; did you mean {near[0]}?' if near else ''}")
        elif has_unknown(value) or key in IGNORED_SETTINGS:
            continue
        elif key in TEXTS and not isinstance(value, str):
            yield CheckFailure(key, f"{key} is {type(value).__name__}; give text")
        elif (key in FLAGS or key == SERVER_SIDE_APPLY) and _boolean_text(value) not in BOOLEANS:
            yield CheckFailure(key, f"{key} is {value!r}; give true or false")
        elif key in UNSUPPORTED_SETTINGS and _boolean_text(value) not in ("", "false"):
            yield CheckFailure(key, f"{key} is not supported in a rehearsal; leave it out")
        elif key == SERVER_SIDE_APPLY and _boolean_text(value) != "true":
            yield CheckFailure(key, f"{key} is {value!r}; a rehearsal supports only server-side apply, which is the default")
    yield from _kubeconfig_faults(plain)


def _kubeconfig_faults(plain: Mapping[str, Any]) -> Iterator[CheckFailure]:
    if any(has_unknown(plain.get(key)) for key in CLUSTER_SETTINGS):
        return
    if not (given := plain.get("kubeconfig")):
        # The real provider uses the cluster of the user's current context.
        yield CheckFailure(
            "kubeconfig", "kubeconfig is not set, and a rehearsal uses none of the environment; give the cluster's kubeconfig"
        )
    elif isinstance(given, str):
        try:
            read_settings(plain, {}).access()
        except KubeconfigError as refused:
            yield CheckFailure("kubeconfig", str(refused))


def diff_settings(old: Json, new: Json) -> DiffResult:
    """Return the differences between two configurations.

    A changed identifier replaces all objects, and with an unchanged one nothing does. Without identifiers another cluster does: another
    entry of the kubeconfig's clusters, or one that is unknown.
    https://github.com/pulumi/pulumi-kubernetes/blob/master/provider/pkg/provider/provider.go (DiffConfig)
    """
    before, after = reveal(old), reveal(new)
    identified = IDENTIFIER in after and before.get(IDENTIFIER) == after[IDENTIFIER]
    unknown = {key for key in CLUSTER_SETTINGS if has_unknown(after.get(key))}
    replacing: set[str] = set()
    if not identified:
        if IDENTIFIER in before and IDENTIFIER in after:
            replacing.add(IDENTIFIER)
        if unknown:
            replacing |= unknown
        elif _other_cluster(before, after):
            replacing |= set(CLUSTER_SETTINGS)
    return DiffResult.of_settings(before, after, replacing)


def _other_cluster(before: Json, after: Json) -> bool:
    one, other = _cluster(before), _cluster(after)
    return one is not None and other is not None and one != other


def _cluster(plain: Json) -> Any:
    """Return the cluster entry that a kubeconfig leads to; None for none."""
    try:
        document = yaml.safe_load(_document(str(plain["kubeconfig"]))[0])
        context = plain.get("context") or document["current-context"]
        (found,) = (entry["context"]["cluster"] for entry in document["contexts"] if entry["name"] == context)
        name = plain.get("cluster") or found
        (cluster,) = (entry["cluster"] for entry in document["clusters"] if entry["name"] == name)
    except (KubeconfigError, KeyError, TypeError, ValueError, yaml.YAMLError):
        return None
    return cluster


def _document(given: str) -> tuple[str, str, Path]:
    """Return a kubeconfig's text, its name in messages, and the folder of its relative paths; given is the text or a path."""
    if "\n" in given or given.lstrip().startswith("{"):
        return given, "kubeconfig", Path()
    path = Path(given).expanduser()
    try:
        return path.read_text(), str(path), path.parent
    except (OSError, ValueError) as error:
        raise KubeconfigError(
            "kubeconfig", f"is neither a kubeconfig's text nor a path that can be read ({type(error).__name__})"
        ) from error


def _boolean_text(value: Any) -> str:
    """Return a flag in the format of the SDKs, which send a boolean or its text."""
    return str(value).lower() if isinstance(value, bool) else str(value)
