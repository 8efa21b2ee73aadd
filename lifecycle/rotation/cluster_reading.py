"""Reading of a live cluster: machines, gangs and blockers, or the reason why the reading is incomplete."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from components.plan.model import ClusterPlan
from lifecycle.kubernetes_api.connection import ApiServerUnreachableError, Connection
from lifecycle.rotation.cluster_objects import Blocker, ClusterObjects, Json
from lifecycle.rotation.garbage_collection import paused_collection
from lifecycle.rotation.journal_records import Target
from lifecycle.rotation.model import Freshness, Gang
from lifecycle.rotation.plan_policy import allocation_key
from lifecycle.rotation.selection import Candidate

PAGE = 500
"""Objects per request: a page of pods is about 3 MB of JSON."""
TRIES = 3
"""Times that a list is read from its beginning, if the API server no longer has the version of its first page."""
GONE = 410
OK = 200
NODES = "/api/v1/nodes"
PODS = "/api/v1/pods"
POD_GROUPS = "/apis/scheduling.k8s.io/v1alpha2/podgroups"
BUDGETS = "/apis/policy/v1/poddisruptionbudgets"
VERSION = "/version"
PODS_ON_NODES = "spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed"


@dataclass(frozen=True)
class ClusterReading:
    """Machines, gangs and blockers of a cluster, read at a time in seconds since 1970.

    version: of the API server that answered, such as v1.36.3. incomplete: why there are none of them, "" after a complete reading. What
    Azure reports of the machines is not part of the reading.
    """

    at: float
    machines: tuple[Candidate, ...] = ()
    gangs: tuple[Gang, ...] = ()
    blockers: tuple[Blocker, ...] = ()
    version: str = ""
    incomplete: str = ""

    def freshness(self, before: Freshness | None, azure_at: float, throttled_until: float = 0.0) -> Freshness:
        """Return the freshness of the observations; after an incomplete reading, the times are those of the last complete one."""
        if not self.incomplete:
            return Freshness(self.at, self.at, azure_at, throttled_until=throttled_until)
        nodes_at, jobs_at = (before.nodes_at, before.jobs_at) if before else (0.0, 0.0)
        return Freshness(nodes_at, jobs_at, azure_at, self.incomplete, throttled_until)


class _IncompleteError(Exception):
    """A list that could not be read to its end; the message is the reason."""


class _ExpiredError(_IncompleteError):
    """A list whose version the API server has discarded before the last page: the list has to be read again."""


def read_cluster(connection: Connection, cluster: ClusterPlan, targets: Mapping[str, Target], now: float) -> ClusterReading:
    """Return the state of a cluster; now is in seconds since 1970.

    A list that fails makes the whole reading incomplete: without its pods, a busy node would look idle. No error is raised.
    """
    reason: Exception = _IncompleteError()
    for _ in range(TRIES):
        try:
            with paused_collection():
                objects = _read(connection, cluster, now)
            version = _read_version(connection)
        except _ExpiredError as error:
            reason = error
        except (_IncompleteError, ApiServerUnreachableError) as error:
            reason = error
            break
        else:
            machines = objects.candidates(targets, lambda team, pool: allocation_key(cluster, team, pool))
            return ClusterReading(now, tuple(machines), tuple(objects.gangs()), tuple(objects.blockers), version)
    return ClusterReading(now, incomplete=f"cluster {cluster.name}: {reason}")


def _read(connection: Connection, cluster: ClusterPlan, now: float) -> ClusterObjects:
    """Return all objects of a cluster; raise _IncompleteError or ApiServerUnreachableError."""
    objects = ClusterObjects(now)
    # Nodes first: a pod of a node that joins meanwhile then counts for its gang only, and no node lacks its pods.
    nodes = _read_list(connection, NODES, {}, objects.add_node)
    if not nodes and cluster.nodes:
        raise _IncompleteError(f"the API server has no node, and the plan has {cluster.nodes}")
    _read_list(connection, PODS, {"fieldSelector": PODS_ON_NODES}, objects.add_pod)
    _read_list(connection, POD_GROUPS, {}, objects.add_pod_group)
    _read_list(connection, BUDGETS, {}, objects.add_budget)
    return objects


def _read_version(connection: Connection) -> str:
    """Return the version of the API server that answers; raise _IncompleteError or ApiServerUnreachableError."""
    response = connection.request("GET", VERSION, {})
    version = response.body.get("gitVersion")
    if response.status != OK or not isinstance(version, str):
        raise _IncompleteError(f"GET {VERSION}: no gitVersion in the answer (HTTP {response.status})")
    return version


def _read_list(connection: Connection, path: str, query: Mapping[str, str], add: Callable[[Json], None]) -> int:
    """Add all objects of a list, in pages of one version of the list, and return their number."""
    count = 0
    after: dict[str, str] = {}
    while True:
        response = connection.request("GET", path, {**query, "limit": str(PAGE), **after})
        if response.status == GONE:
            raise _ExpiredError(f"GET {path}: its version expired before the last page of {PAGE} objects, {TRIES} times")
        items = response.body.get("items")
        if response.status != OK or not isinstance(items, list):
            raise _IncompleteError(f"GET {path}: HTTP {response.status}: {response.message}")
        for item in items:
            add(item)
        count += len(items)
        token = response.body.get("metadata", {}).get("continue")
        if not token:
            return count
        after = {"continue": token}
