"""Measuring messages through a live cluster: programs in processes of their own, and what they saw together."""
