"""Settings of dask.distributed for both ends: mutual TLS, no work stealing, no retries, long timeouts.

The timeouts are long because a measurement can take all CPUs for a while: a worker that does not answer is not
necessarily dead. Profiling, memory limits and the dashboard are off, because they would disturb the measurement.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

CREDENTIALS = ("ca.pem", "fleet.pem", "fleet.key")
# Scheduler and worker both run an HTTP server without authentication: it listens on the loopback, and has no pages.
NO_PAGES = "127.0.0.1:0"
HEARTBEAT_S = 20.0
SLOT = "slot"  # a Dask resource; each machine has one, so it runs one assignment at a time
SETTINGS: Mapping[str, Any] = {
    "distributed.scheduler.work-stealing": False,
    "distributed.scheduler.worker-ttl": "30 minutes",
    "distributed.scheduler.allowed-failures": 0,
    "distributed.scheduler.active-memory-manager.start": False,
    "distributed.scheduler.idle-timeout": None,
    "distributed.scheduler.dashboard.status.task-stream-length": 1,
    "distributed.scheduler.http.routes": [],
    "distributed.worker.http.routes": [],
    "distributed.worker.profile.enabled": False,
    "distributed.worker.memory.target": False,
    "distributed.worker.memory.spill": False,
    "distributed.worker.memory.pause": False,
    "distributed.worker.memory.terminate": False,
    "distributed.comm.timeouts.connect": "30s",
    "distributed.comm.timeouts.tcp": "10 minutes",
    "distributed.admin.system-monitor.disk": False,
    "distributed.admin.system-monitor.interval": "60s",
    "distributed.admin.system-monitor.gil.enabled": False,
    # Handlers that run code without a task. fslab does not use them.
    "distributed.worker.blocked-handlers": ["run", "run_coroutine", "plugin-add", "plugin-remove", "actor_execute"],
    "distributed.scheduler.blocked-handlers": [
        "run_function", "broadcast", "proxy", "feed", "register_scheduler_plugin", "register_worker_plugin",
        "register_nanny_plugin",
    ],
    "distributed.admin.tick.interval": "60s",
    "distributed.admin.tick.cycle": "60s",
    "distributed.admin.tick.limit": "1 hour",
}  # fmt: skip


def security() -> Any:
    """Return the TLS settings. Each end must present a certificate of the fleet before the other reads any data.

    The certificate files are in the current directory.
    """
    from distributed import Security  # noqa: PLC0415 - only the two programs that speak Dask's protocol load it

    authority, certificate, key = (str(Path(name).absolute()) for name in CREDENTIALS)
    ends = {f"tls_{role}_{kind}": path for role in ("client", "scheduler", "worker")
            for kind, path in (("cert", certificate), ("key", key))}  # fmt: skip
    return Security(  # type: ignore[no-untyped-call]
        require_encryption=True, tls_ca_file=authority, tls_min_version=0x0304, **ends
    )
