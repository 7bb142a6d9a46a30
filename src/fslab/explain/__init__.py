"""Explains why a file system is as fast as it is: mechanisms, kernel evidence for them, and switches to turn them off.

Pure: reads neither the store nor the machine, runs nothing. A mechanism makes no statement without evidence.
"""
