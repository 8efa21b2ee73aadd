"""Decides which aliases of older API versions a program carries: none."""

import pulumi

VERSIONED_PACKAGES = ("azure-native:", "kubernetes:")


def drop_version_aliases() -> None:
    """Keeps the Azure and Kubernetes SDKs from sending an alias per older API version with every resource created from here on.

    Those aliases cost half of a program's CPU: each becomes several Outputs in the SDK, and a scale set has 29. They only serve a stack
    whose resources were once created under a versioned type token (`azure-native:compute/v20230301:VirtualMachineScaleSet`). No stack
    of this project ever was, so dropping them changes no URN and replaces nothing. An alias with a name, a parent or a URN, as a
    rename needs it, stays.
    """
    pulumi.runtime.register_stack_transformation(_without_version_aliases)


def _without_version_aliases(args: pulumi.ResourceTransformationArgs) -> pulumi.ResourceTransformationResult | None:
    if not args.opts.aliases or not args.type_.startswith(VERSIONED_PACKAGES):
        return None
    args.opts.aliases = [alias for alias in args.opts.aliases if not _is_version_alias(alias)]
    return pulumi.ResourceTransformationResult(args.props, args.opts)


def _is_version_alias(alias: pulumi.Input[str | pulumi.Alias]) -> bool:
    """Whether an alias says nothing but another type token."""
    return isinstance(alias, pulumi.Alias) and {field for field, value in vars(alias).items() if value is not ...} == {"type_"}
