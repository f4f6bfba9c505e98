"""What was compiled before: `cache_key` tells compilations apart, `code_cache` keeps their code; `lock` says who writes."""
