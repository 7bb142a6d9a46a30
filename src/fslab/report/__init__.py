"""What a campaign found, for people: ``build`` says what there is to say, ``terminal`` how it looks.

Imports neither; a report never measures, and changes nothing in the store.
"""
