"""One file per fault of a disk."""
