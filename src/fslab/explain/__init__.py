"""Why a file system is as fast as it is: mechanisms, the kernel's evidence for them, and switches that turn them off.

Pure: reads neither the store nor the machine, runs nothing. Without its evidence a mechanism says nothing.
"""
