"""Stores campaigns and trials: the only SQL in fslab.

``store.Store`` is the entry point, ``campaign.Campaign`` a stored campaign; ``export`` writes trials to files. This
module must not import them: importing SQLAlchemy takes half a second, and only some commands need it.
"""
