"""The systems, one file each, behind the interface of system.py; what is optional is imported where it is used."""
