"""Waiting, which the cases share."""

import time

from e2b import CommandExitException


def waited(what, look):
    # A state is waited for, whose time nobody knows; the end is that of a test that would never end.
    for _ in range(300):
        try:
            found = look()
        except CommandExitException:
            found = None
        if found:
            return found
        time.sleep(0.2)
    raise AssertionError(f"{what}: not within a minute")
