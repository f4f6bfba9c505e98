"""The `weft` command: one module a subcommand."""
