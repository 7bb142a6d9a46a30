"""Runs a study on many machines: agents take assignments from the fleet's store, measure, and send the results.

- ``starting``: makes assignments of a study, one for each machine; starts the runs of schedules, and gives up machines
  that are away.
- ``agent``: runs on each machine as root. It runs an assignment in a separate process (``measuring``), stores the
  trials in a local store first, and sends them to the fleet's store (``execution``), fenced by the assignment's epoch.
- ``worker_settings``: what studies may do on a machine, as set by the machine's own administrator.

The fleet's store (PostgreSQL) is authoritative, and the only thing that machines connect to. This package measures
nothing.
"""
