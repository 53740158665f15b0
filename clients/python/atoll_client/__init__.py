"""Every operation of an Atoll platform's API, typed. Nothing but the standard library."""

from .caller import AtollFailure
from .operations import Operations as Atoll

__all__ = ["Atoll", "AtollFailure"]
