"""Windows of images and volumes, and samples between their elements."""
