"""Which versions are live: policies, labels, loading, unloading."""
