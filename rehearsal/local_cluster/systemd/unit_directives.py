"""Directives of systemd units that local services support, and those without a meaning here, with the reason."""

from __future__ import annotations

SUPPORTED = {
    "Unit.Description": "name of the unit in messages",
    "Unit.Wants": "starts with the unit; its failure does not matter",
    "Unit.Requires": "as Wants; a required unit that is not run is listed with its reason",
    "Unit.After": "starts once the other unit is ready or has failed",
    "Unit.Before": "as After, in the other direction",
    "Unit.StartLimitIntervalSec": "only 0: restarts without limit",
    "Service.Type": "simple, exec, notify and oneshot",
    "Service.RemainAfterExit": "a oneshot that has ended successfully counts as started",
    "Service.Environment": "in the program's environment",
    "Service.EnvironmentFile": "read at each start; with - a missing file is ignored",
    "Service.ExecStartPre": "run before each start, in order, until it ends",
    "Service.ExecStart": "the program",
    "Service.ExecStartPost": "run once the program is ready",
    "Service.Restart": "no, always and on-failure",
    "Service.RestartSec": "seconds until a restart",
    "Service.TimeoutStartSec": "read; a start has no timeout, as infinity says",
    "Service.TimeoutStopSec": "seconds between SIGTERM and SIGKILL",
    "Service.RuntimeDirectory": "made below /run before each start",
    "Service.LogsDirectory": "made below /var/log before each start",
    "Service.LogsDirectoryMode": "mode of the log directory",
    "Service.KillMode": "process and control-group are equal: a program here has no other processes",
    "Timer.OnActiveSec": "read; no timer runs here, a test starts its service",
    "Timer.OnUnitActiveSec": "as above",
    "Timer.RandomizedDelaySec": "as above",
    "Timer.OnCalendar": "as above",
    "Timer.AccuracySec": "as above",
    "Install.WantedBy": "enabled units start with the machine",
}
"""Supported directives by section, and their effect."""

_SHARED_KERNEL = "many machines share one kernel here, so all programs have equal priority and limits"
_CONFINED = "confinement needs systemd's namespaces or capabilities; programs run with the user's rights"
WITHOUT_MEANING = {
    "Service.OOMScoreAdjust": _SHARED_KERNEL,
    "Service.CPUWeight": _SHARED_KERNEL,
    "Service.IOSchedulingClass": _SHARED_KERNEL,
    "Service.IOSchedulingPriority": _SHARED_KERNEL,
    "Service.Nice": _SHARED_KERNEL,
    "Service.Slice": _SHARED_KERNEL,
    "Service.Delegate": _SHARED_KERNEL,
    "Service.TasksMax": _SHARED_KERNEL,
    "Service.CPUAccounting": _SHARED_KERNEL,
    "Service.MemoryAccounting": _SHARED_KERNEL,
    "Service.LimitNOFILE": "the user's limit applies, which suffices for few clients",
    "Service.LimitCORE": "as LimitNOFILE",
    "Service.LimitNPROC": "as LimitNOFILE",
    "Service.LimitMEMLOCK": "as LimitNOFILE",
    **dict.fromkeys(
        (
            "Service.NoNewPrivileges",
            "Service.CapabilityBoundingSet",
            "Service.ProtectSystem",
            "Service.ProtectHome",
            "Service.PrivateDevices",
            "Service.ProtectKernelTunables",
            "Service.ProtectKernelModules",
            "Service.ProtectControlGroups",
            "Service.RestrictAddressFamilies",
            "Service.RestrictNamespaces",
            "Service.LockPersonality",
            "Service.ReadWritePaths",
        ),
        _CONFINED,
    ),
    "Service.PrivateTmp": "each machine has its own /tmp here, and few programs",
}
"""Directives without an effect here, and the reason."""
