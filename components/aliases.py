"""Removal of resource aliases for older API versions."""

import pulumi

VERSIONED_PACKAGES = ("azure-native:", "kubernetes:")


def drop_version_aliases() -> None:
    """Remove the aliases for older API versions from all Azure and Kubernetes resources that are created after this call.

    Those aliases use half of a program's CPU: each becomes several Outputs in the SDK, and a scale set has 29. They are only for stacks
    whose resources were created under a versioned type token (`azure-native:compute/v20230301:VirtualMachineScaleSet`). This project has
    no such stack, so the removal changes no URN and replaces no resource. Aliases with a name, a parent or a URN, for renames, remain.
    """
    pulumi.runtime.register_stack_transformation(_without_version_aliases)


def _without_version_aliases(args: pulumi.ResourceTransformationArgs) -> pulumi.ResourceTransformationResult | None:
    if not args.opts.aliases or not args.type_.startswith(VERSIONED_PACKAGES):
        return None
    args.opts.aliases = [alias for alias in args.opts.aliases if not _is_version_alias(alias)]
    return pulumi.ResourceTransformationResult(args.props, args.opts)


def _is_version_alias(alias: pulumi.Input[str | pulumi.Alias]) -> bool:
    """Return True if an alias contains only another type token."""
    return isinstance(alias, pulumi.Alias) and {field for field, value in vars(alias).items() if value is not ...} == {"type_"}
