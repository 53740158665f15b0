"""Nothing of these has a synchronous interface."""
