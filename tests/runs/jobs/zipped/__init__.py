"""Travels in a zip."""
