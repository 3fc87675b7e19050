"""A module of a package."""


def count(number):
    return number
