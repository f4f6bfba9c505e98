"""The native runtime: `rt/` is freestanding C99, `py/` its Python binding."""
