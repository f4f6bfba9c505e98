"""MXNet: networks of a symbol.json and a .params file, read without MXNet."""
