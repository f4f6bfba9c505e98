"""Caffe's networks: a text of layers (.prototxt), and a file of their weights by name (.caffemodel)."""
