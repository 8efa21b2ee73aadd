"""How a program of ours finds and enters the API server: kubeconfigs that name key files and hold none."""

from __future__ import annotations

from components.boot.machine import BootFile
from components.plan.model import API_SERVER_PORT, ApiServersPlan

LOOPBACK_SERVER = f"https://127.0.0.1:{API_SERVER_PORT}"
"""The API server on the same machine: an internal load balancer sends nothing back to the machine that asked it.
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
    """Kubeconfig of a program beside the API server; authority, certificate and key are paths.

    The server proves the load balancer's name, whatever address it is asked by.
    """
    server = {"server": LOOPBACK_SERVER, "tls-server-name": servers.dns_name, "certificate-authority": authority}
    return BootFile(path, document(server, {"client-certificate": certificate, "client-key": key}), mode="0600")


def document(server: dict[str, str], user: dict[str, str]) -> str:
    """A kubeconfig with one server and one user, as YAML."""
    return _DOCUMENT.format(
        server="".join(f"\n    {key}: {value}" for key, value in server.items()),
        user="".join(f'\n    {key}: "{value}"' for key, value in user.items()),
    )
