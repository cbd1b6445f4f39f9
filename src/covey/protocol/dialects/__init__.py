"""Dialects: how programs and their daemon speak over a stream. The first is our own."""
