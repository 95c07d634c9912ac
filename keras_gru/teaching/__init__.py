"""Tools for people who learn: traces, exercises, worked examples, a comparison of cells."""
