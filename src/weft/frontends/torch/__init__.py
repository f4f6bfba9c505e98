"""PyTorch: `importer.from_exported_program` imports a program that `torch.export.export` made."""
