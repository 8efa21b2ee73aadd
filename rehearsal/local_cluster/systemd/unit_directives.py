"""Says which lines of a systemd unit are honoured where its program runs without systemd, and which have no meaning there, and why."""

from __future__ import annotations

HONOURED = {
    "Unit.Description": "what people are told of the unit",
    "Unit.Wants": "starts with it, whatever becomes of what it wants",
    "Unit.Requires": "as Wants; what it requires and is not run is listed with its reason",
    "Unit.After": "starts once that unit is ready, or has failed",
    "Unit.Before": "the same, told by the other unit",
    "Unit.StartLimitIntervalSec": "0 alone: it is restarted for ever",
    "Service.Type": "simple, exec, notify and oneshot",
    "Service.RemainAfterExit": "a oneshot that has ended well counts as started",
    "Service.Environment": "in the program's environment",
    "Service.EnvironmentFile": "read at each start; with - an absent one is none",
    "Service.ExecStartPre": "run before each start, in order, until it ends",
    "Service.ExecStart": "the program",
    "Service.ExecStartPost": "run once the program is ready",
    "Service.Restart": "no, always and on-failure",
    "Service.RestartSec": "seconds until a restart",
    "Service.TimeoutStartSec": "read, and told: nothing is given up while it starts, as infinity says",
    "Service.TimeoutStopSec": "seconds between SIGTERM and SIGKILL",
    "Service.RuntimeDirectory": "made below /run before each start",
    "Service.LogsDirectory": "made below /var/log before each start",
    "Service.LogsDirectoryMode": "mode of that directory",
    "Service.KillMode": "process and control-group alike: a program here has no others beside it",
    "Timer.OnActiveSec": "read, and told: no timer runs here, a test starts its service",
    "Timer.OnUnitActiveSec": "as above",
    "Timer.RandomizedDelaySec": "as above",
    "Timer.OnCalendar": "as above",
    "Timer.AccuracySec": "as above",
    "Install.WantedBy": "enabled units start with the machine",
}
"""Directives by section that a start, a restart or an end heeds, and how."""

_MANY = "many machines share one kernel here, and no program of one may have a claim on it that another does not have"
_CONFINED = "confinement needs namespaces or capabilities of systemd's; the programs run with the rights of whoever rehearses"
WITHOUT_MEANING = {
    "Service.OOMScoreAdjust": _MANY,
    "Service.CPUWeight": _MANY,
    "Service.IOSchedulingClass": _MANY,
    "Service.IOSchedulingPriority": _MANY,
    "Service.Nice": _MANY,
    "Service.Slice": _MANY,
    "Service.Delegate": _MANY,
    "Service.TasksMax": _MANY,
    "Service.CPUAccounting": _MANY,
    "Service.MemoryAccounting": _MANY,
    "Service.LimitNOFILE": "the limit of whoever rehearses holds, which must do for few clients",
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
    "Service.PrivateTmp": "each machine has a /tmp of its own here, and few programs",
}
"""Directives that are read and do nothing here, and why."""
