"""The store of results: campaigns, their trials and names, as values. ``api.results`` puts an object around each."""

from fslab.store.store import Store

__all__ = ["Store"]
