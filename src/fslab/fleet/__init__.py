"""Many machines, one study: a scheduler dispatches assignments to agents, which measure and send what they measured.

- ``certificates``, ``invitations``, ``enrolment``: who belongs to the fleet. Mutual TLS, an authority of its own.
- ``starting``: assignments made of a study, one for each machine. ``scheduler``: lets machines join, and says what is
  to be done (``pending``). ``dispatching``: dask.distributed's scheduler, a process without privileges as ``link``.
- ``agent``: on each machine, as root: runs an assignment in a process of its own (``measuring``), keeps the trials in a
  local store first, and sends them to the fleet's store (``sending``), fenced by the assignment's epoch.
- ``link``: the agent's connection to the scheduler. Whoever has a certificate of the fleet can run code in a Dask
  worker, so it is a process without privileges, which can only name assignments to the agent.
- ``worker_settings``, ``permission``: what studies may do on a machine; the machine's own administrator says it.

The fleet's store (PostgreSQL) is what counts; Dask carries only names of assignments. Nothing here measures.
"""
