"""Bytes that the API server has sent, from its metrics: answers by verb and resource, and events of watches by kind."""

from __future__ import annotations

import http.client
import re
from collections import Counter
from pathlib import Path

from lifecycle.kubernetes_api.kubeconfig import read

ANSWERS, EVENTS = "apiserver_response_sizes_sum", "apiserver_watch_events_sizes_sum"
_LINE = re.compile(r"^(\w+)\{([^}]*)\} (\S+)$", re.MULTILINE)
_LABEL = re.compile(r'(\w+)="([^"]*)"')


def sent(kubeconfig: Path) -> Counter[str]:
    """Return bytes since the API server's start, by purpose."""
    access = read(kubeconfig)
    connection = http.client.HTTPSConnection(access.host, access.port, timeout=60, context=access.tls)
    try:
        connection.request("GET", "/metrics", headers=access.headers)
        text = connection.getresponse().read().decode()
    finally:
        connection.close()
    found: Counter[str] = Counter()
    for name, labels, value in _LINE.findall(text):
        labels_by_name = dict(_LABEL.findall(labels))
        if name == ANSWERS and labels_by_name["verb"] != "WATCH":
            found[f"{labels_by_name['verb']} {labels_by_name['resource']}"] += int(float(value))
        elif name == EVENTS:
            found[f"events of {labels_by_name.get('resource') or labels_by_name.get('kind')}"] += int(float(value))
    return found
