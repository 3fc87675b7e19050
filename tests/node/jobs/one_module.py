"""Travels alone."""


def greet(whom):
    return f"hello {whom}"
