"""Operating system settings of all machines: kernel parameters, and no automatic updates."""

from __future__ import annotations

from dataclasses import dataclass

from components.boot.machine import BootFile
from components.boot.unit import unit

KERNEL_UNIT = "gpufleet-kernel.service"
SYSCTL_FILE = "/etc/sysctl.d/99-zz-gpufleet.conf"
"""File that sorts after 99-sysctl.conf, to which the HPC images append neighbour thresholds of 4096 to 16384:
https://github.com/Azure/azhpc-images/blob/8e9d055fb9e1f7385da734969793861c447958a1/components/hpc-tuning.sh"""


@dataclass(frozen=True)
class Sysctl:
    """One kernel setting and the reason for its value."""

    name: str
    value: str
    why: str


EVERY_MACHINE = (
    Sysctl("net.ipv4.neigh.default.gc_thresh1", "80000", "below it no neighbour is forgotten"),
    Sysctl("net.ipv4.neigh.default.gc_thresh2", "90000", "openai.com/index/scaling-kubernetes-to-2500-nodes: neighbour table overflow"),
    Sysctl("net.ipv4.neigh.default.gc_thresh3", "100000", "stopped connections of a cluster of 2,500 nodes"),
    Sysctl("net.core.somaxconn", "32768", "thousands of clients reconnect at once after a restart"),
    Sysctl("fs.inotify.max_user_instances", "8192", "each container's log is watched"),
    Sysctl("fs.inotify.max_user_watches", "1048576", "as above"),
)
NODE = (
    Sysctl("net.ipv4.ip_forward", "1", "pods have addresses behind the machine's"),
    Sysctl(
        "-net.ipv4.conf.veth*.rp_filter", "1", "udev sets each new link as sysctl.d(5) says, which on Ubuntu lets a pod send as another"
    ),
    Sysctl("-net.ipv4.conf.azv*.rp_filter", "1", "as above, for links that azure-vnet makes"),
    Sysctl("net.netfilter.nf_conntrack_max", "1048576", "until kube-proxy sets its own by number of cores"),
    Sysctl("vm.max_map_count", "1048576", "a training process maps each checkpoint shard and each GPU's memory"),
    Sysctl("kernel.pid_max", "4194304", "data loaders: thousands of processes per pod"),
    Sysctl("vm.overcommit_memory", "1", "protectKernelDefaults: the kubelet refuses to start on another value"),
    Sysctl("vm.panic_on_oom", "0", "as above"),
    Sysctl("kernel.panic", "10", "as above"),
    Sysctl("kernel.panic_on_oops", "1", "as above"),
    Sysctl("kernel.keys.root_maxkeys", "1000000", "as above"),
    Sysctl("kernel.keys.root_maxbytes", "25000000", "as above"),
)


def _sysctls(settings: tuple[Sysctl, ...]) -> BootFile:
    lines = "".join(f"# {item.why}\n{item.name} = {item.value}\n" for item in settings)
    return BootFile(SYSCTL_FILE, lines)


def kernel_files(node: bool) -> tuple[BootFile, ...]:
    """Return the kernel settings and the unit that applies them; systemd's own unit runs before the files of the first boot exist."""
    modules = ("overlay", "nf_conntrack") if node else ()
    load = (f"ExecStart=/usr/sbin/modprobe --all {' '.join(modules)}",) if modules else ()
    service = unit(
        KERNEL_UNIT,
        "Kernel settings",
        ("After=systemd-sysctl.service systemd-modules-load.service",),
        ("Type=oneshot", "RemainAfterExit=yes", *load, f"ExecStart=/usr/sbin/sysctl --load={SYSCTL_FILE}"),
    )
    return (_sysctls(EVERY_MACHINE + (NODE if node else ())), service)


def steady_files() -> tuple[BootFile, ...]:
    """Return the files that disable automatic updates; updates come with a new image, after a drain.

    In an incident, a routine update restarted systemd-networkd, which removed the routes of a GPU fleet:
    https://status.openai.com/incidents/01JXCAW3K3JAE0EP56AEZ7CBG3/write-up
    """
    return (
        BootFile(
            "/etc/apt/apt.conf.d/99-gpufleet",
            "// Updates come with a new image.\n"
            'APT::Periodic::Enable "0";\nAPT::Periodic::Update-Package-Lists "0";\nAPT::Periodic::Unattended-Upgrade "0";\n',
        ),
        BootFile(
            "/etc/needrestart/conf.d/gpufleet.conf",
            "# A package installed by hand lists what it would restart, and restarts nothing.\n$nrconf{restart} = 'l';\n",
        ),
        BootFile(
            "/etc/systemd/networkd.conf.d/10-gpufleet.conf",
            "# A restart of systemd-networkd leaves alone the routes and rules that pod networking made.\n"
            "[Network]\nManageForeignRoutes=no\nManageForeignRoutingPolicyRules=no\n",
        ),
    )
