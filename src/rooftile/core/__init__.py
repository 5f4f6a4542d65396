"""Value types that every room shares: dtypes, affine dims, costs, errors, the journal."""
