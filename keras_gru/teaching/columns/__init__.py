"""A trace as texts draw it: columns, matrices, and [h, x] in one column."""
