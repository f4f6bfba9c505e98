"""The on-disk cache of compiled code: `cache_key` makes keys, `code_cache` stores entries, `lock` lets one process write each."""
