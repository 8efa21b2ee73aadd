"""Kubeconfigs of gpufleet's programs, with paths of key files."""

from __future__ import annotations

from components.boot.machine import BootFile
from components.plan.model import API_SERVER_PORT, ApiServersPlan

LOOPBACK_SERVER = f"https://127.0.0.1:{API_SERVER_PORT}"
"""URL of the API server on the same machine, since an internal load balancer does not forward a request back to its sender.
https://learn.microsoft.com/azure/load-balancer/load-balancer-troubleshoot-backend-traffic"""


_DOCUMENT = """\
apiVersion: v1
kind: Config
clusters:
- name: cluster
  cluster:{server}
users:
- name: machine
  user:{user}
contexts:
- name: machine
  context:
    cluster: cluster
    user: machine
current-context: machine
"""


def local(path: str, servers: ApiServersPlan, authority: str, certificate: str, key: str) -> BootFile:
    """Return the kubeconfig of a program on the API server's machine; authority, certificate and key are paths.

    The server's certificate has the load balancer's name, also on the loopback address.
    """
    server = {"server": LOOPBACK_SERVER, "tls-server-name": servers.dns_name, "certificate-authority": authority}
    return BootFile(path, document(server, {"client-certificate": certificate, "client-key": key}), mode="0600")


def document(server: dict[str, str], user: dict[str, str]) -> str:
    """Return a kubeconfig with one server and one user, as YAML."""
    return _DOCUMENT.format(
        server="".join(f"\n    {key}: {value}" for key, value in server.items()),
        user="".join(f'\n    {key}: "{value}"' for key, value in user.items()),
    )
