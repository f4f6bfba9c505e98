"""Translations of Caffe's layers, one file a family."""
