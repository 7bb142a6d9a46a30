"""Runs a study on many machines: a scheduler dispatches assignments to agents, which measure and send the results.

- ``certificates``, ``invitations``, ``enrolment``: membership of the fleet. Mutual TLS with the fleet's own authority.
- ``starting``: makes assignments of a study, one for each machine. ``scheduler``: lets machines join, and determines
  the open assignments. ``dispatching``: dask.distributed's scheduler, a process without privileges.
- ``agent``: runs on each machine as root. It runs an assignment in a separate process (``measuring``), stores the
  trials in a local store first, and sends them to the fleet's store (``execution``), fenced by the assignment's epoch.
- ``link``: the agent's connection to the scheduler. Anyone with a certificate of the fleet can run code in a Dask
  worker. Therefore the link is a process without privileges, which can only name assignments to the agent.
- ``worker_settings``, ``permission``: what studies may do on a machine, as set by the machine's own administrator.

The fleet's store (PostgreSQL) is authoritative. Dask carries only names of assignments. This package measures nothing.
"""
