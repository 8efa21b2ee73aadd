"""Components of one cluster and their dependencies."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import pulumi
import pulumi_azure_native as azure
from pulumi_azure_native import resources

from components.api_endpoint import ApiEndpoint, ApiEndpointArgs
from components.api_servers import ApiServers, ApiServersArgs
from components.base_outputs import BaseOutputs
from components.boot.api_server import boot_api_server
from components.boot.etcd import boot_etcd
from components.boot.machine import custom_data
from components.boot.node import boot_nodes
from components.etcd import Etcd, EtcdArgs
from components.identity import Identity, IdentityArgs
from components.ingress import Ingress, IngressArgs
from components.kubernetes_objects import KubernetesObjects, KubernetesObjectsArgs
from components.manifests.objects import cluster_objects
from components.network import Network, NetworkArgs
from components.node_pool import NodePool, NodePoolArgs
from components.pki import Pki, PkiArgs, people_kubeconfig
from components.plan.model import ClusterPlan, EtcdPlan, RegionPlan
from components.ready import ApiServersReady, ApiServersReadyArgs
from components.vault_secrets import VaultSecrets, VaultSecretsArgs


@dataclass(frozen=True)
class ClusterArgs:
    """One cluster of a region: base_provider acts in the base stack's subscription; shrink_guard is the hook of all scale sets."""

    region: RegionPlan
    plan: ClusterPlan
    base: BaseOutputs
    base_provider: pulumi.ProviderResource
    shrink_guard: pulumi.ResourceHookBinding


class Cluster(pulumi.ComponentResource):
    """One cluster: network, control plane, node pools and Kubernetes objects."""

    api_server: str
    """URL of the API servers in the hub's and the cluster's network."""
    kubeconfig: pulumi.Output[str]
    """Administrator's kubeconfig; a secret."""
    people_kubeconfig: pulumi.Output[str]
    """Kubeconfig of all other users; no secret."""

    def __init__(self, name: str, args: ClusterArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("gpufleet:cluster:Cluster", name, {}, opts)
        plan = args.plan
        self.api_server = plan.api_servers.url
        provider = azure.Provider(
            f"{name}-azure",
            subscription_id=plan.subscription,
            tenant_id=args.region.spec.access.tenant,
            # The base provider depends on the check that Pulumi runs inside the hub's network.
            opts=pulumi.ResourceOptions(parent=self, depends_on=[args.base_provider]),
        )
        child = pulumi.ResourceOptions(parent=self, provider=provider)
        pki = Pki(f"{name}-pki", PkiArgs(plan, plan.spec.ca_generation), child)
        self.kubeconfig = pki.admin_kubeconfig
        self.people_kubeconfig = pki.ca_certificate.apply(lambda pem: people_kubeconfig(plan, args.region.spec.access, pem))
        foundation = _Foundation.create(name, args, pki, child)
        etcd_clusters = tuple(self._etcd(f"{name}-{etcd.role}", args, etcd, foundation, child) for etcd in (plan.etcd, plan.events_etcd))
        ready = self._api_servers(name, args, foundation, etcd_clusters, pki, child)
        self._pools(name, args, foundation, child)
        KubernetesObjects(
            f"{name}-objects",
            KubernetesObjectsArgs(args.region, plan, cluster_objects(args.region, plan), pki.admin_kubeconfig, ready),
            pulumi.ResourceOptions(parent=self),
        )
        self.register_outputs({"api_server": self.api_server, "kubeconfig": self.kubeconfig, "people_kubeconfig": self.people_kubeconfig})

    def _etcd(self, name: str, args: ClusterArgs, etcd: EtcdPlan, foundation: _Foundation, child: pulumi.ResourceOptions) -> Etcd:
        """Return the machines of one etcd cluster."""
        etcd_args = EtcdArgs(
            region=args.region,
            plan=args.plan,
            etcd=etcd,
            resource_group=foundation.resource_group,
            subnet_id=foundation.network.subnet_ids[etcd.role],
            identity_id=foundation.identity.ids["etcd"],
            image_id=args.base.image_id(etcd.image),
            custom_data=tuple(custom_data(boot_etcd(args.plan, etcd, member)) for member in etcd.members),
            provisioned=foundation.provisioned,
        )
        return Etcd(name, etcd_args, child)

    def _api_servers(
        self,
        name: str,
        args: ClusterArgs,
        foundation: _Foundation,
        etcd_clusters: tuple[Etcd, ...],
        pki: Pki,
        child: pulumi.ResourceOptions,
    ) -> ApiServersReady:
        """Create the API servers and their access from the hub; return a resource that is complete when a server is ready."""
        plan, subnet_ids = args.plan.api_servers, foundation.network.subnet_ids
        boot = custom_data(boot_api_server(args.region, args.plan))
        servers = ApiServers(
            f"{name}-api",
            ApiServersArgs(
                region=args.region,
                plan=args.plan,
                resource_group=foundation.resource_group,
                subnet_id=subnet_ids["api"],
                identity_id=foundation.identity.ids["control"],
                image_id=args.base.image_id(plan.image),
                custom_data=boot,
                provisioned=(*foundation.provisioned, *etcd_clusters),
                shrink_guard=args.shrink_guard,
            ),
            child,
        )
        endpoint_args = ApiEndpointArgs(
            region=args.region,
            plan=args.plan,
            resource_group=foundation.resource_group,
            frontend_id=servers.frontend_id,
            private_link_subnet_id=subnet_ids["private-link"] if plan.private_link_name else None,
            base=args.base,
            base_provider=args.base_provider,
        )
        endpoint = ApiEndpoint(f"{name}-api-endpoint", endpoint_args, child)
        ready_args = ApiServersReadyArgs(plan, pki.ca_certificate, hashlib.sha256(boot.encode()).hexdigest())
        # The check needs servers, and their DNS name in the hub.
        return ApiServersReady(f"{name}-api-ready", ready_args, pulumi.ResourceOptions(parent=self, depends_on=[servers, endpoint]))

    def _pools(self, name: str, args: ClusterArgs, foundation: _Foundation, child: pulumi.ResourceOptions) -> None:
        """Create the node pools and their ingress load balancer; nodes that boot before the API servers retry."""
        plan, subnet_ids = args.plan, foundation.network.subnet_ids
        backend = None
        if plan.ingress is not None:
            ingress_args = IngressArgs(args.region, plan, plan.ingress, foundation.resource_group, subnet_ids["ingress"])
            backend = Ingress(f"{name}-ingress", ingress_args, child).backend_pool_id
        for pool in plan.pools:
            pool_args = NodePoolArgs(
                region=args.region,
                plan=plan,
                pool=pool,
                resource_group=foundation.resource_group,
                subnet_ids=subnet_ids,
                identity_id=foundation.identity.ids["node"],
                image_id=args.base.image_id(pool.image),
                backend_pool_id=backend if pool.spec.load_balanced else None,
                custom_data=tuple(map(custom_data, boot_nodes(args.region, plan, pool))),
                provisioned=foundation.provisioned,
                shrink_guard=args.shrink_guard,
            )
            NodePool(f"{name}-pool-{pool.name}", pool_args, child)


@dataclass(frozen=True)
class _Foundation:
    """Resources that all machines of a cluster need; provisioned lists those for the first boot."""

    resource_group: pulumi.Output[str]
    network: Network
    identity: Identity
    provisioned: tuple[pulumi.Resource, ...]

    @classmethod
    def create(cls, name: str, args: ClusterArgs, pki: Pki, child: pulumi.ResourceOptions) -> _Foundation:
        plan, base, base_provider = args.plan, args.base, args.base_provider
        group = resources.ResourceGroup(
            f"{name}-group", resource_group_name=plan.resource_group, location=args.region.spec.location, tags=plan.tags, opts=child
        )
        network = Network(f"{name}-network", NetworkArgs(plan, args.region, group.name, base, base_provider), child)
        secrets = VaultSecrets(f"{name}-secrets", VaultSecretsArgs(plan, pki.secrets, base, base_provider), child)
        identity_args = IdentityArgs(plan, args.region, group.name, base, base_provider, secrets.bootstrap_token_id)
        identity = Identity(f"{name}-identity", identity_args, child)
        return cls(group.name, network, identity, (*identity.assigned, *secrets.written, *network.names))
