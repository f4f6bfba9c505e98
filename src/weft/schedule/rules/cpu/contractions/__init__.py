"""Rules for contractions: register tiles, K blocking, GEMV, the sketch, and the parts that they share."""
