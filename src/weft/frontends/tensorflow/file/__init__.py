"""TensorFlow's files: messages of protobuf, and the tables and shards of its checkpoints."""
