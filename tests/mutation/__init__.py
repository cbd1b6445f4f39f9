"""Faults planted at random in a copy of the core, and who catches them: see CONTRIBUTING.md. Not part of the tests."""
