"""Boxes that detectors find: decoded from anchors, and chosen by scores."""
