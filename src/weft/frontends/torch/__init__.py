"""PyTorch: `importer.from_exported_program` imports what `torch.export.export` makes of a module."""
