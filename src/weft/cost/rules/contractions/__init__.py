"""The costs of the rules for contractions on a core: which rule, its tiles, K blocking, prefetches."""
