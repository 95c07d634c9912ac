"""The live versions of models: policies, labels, loading, unloading."""
