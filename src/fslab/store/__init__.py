"""Where campaigns and trials are kept: the only SQL in fslab.

``store.Store`` is the way in, ``campaign.Campaign`` what a campaign is, ``export`` turns trials into
files. This module imports none of them: SQLAlchemy takes half a second, and only some verbs need it.
"""
