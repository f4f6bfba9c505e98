"""What every layer may use: errors, data types, knobs."""
