"""The three IRs: graph (what), tile (how), program (when and where)."""
