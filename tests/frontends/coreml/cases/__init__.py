"""Cases of Core ML's operations for `make_cases`: what builds each program, its inputs, and the formula of its outputs."""
