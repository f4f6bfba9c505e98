"""A backend that makes no code: the compiler runs as for any other, so that its pipeline is tested without one."""
