"""The rules of the house that a machine can check, one module per kind of source."""
