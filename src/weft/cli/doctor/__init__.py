"""`weft doctor`: the state of this machine and of the installation."""
