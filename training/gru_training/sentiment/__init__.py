"""The sentiment task: from labelled texts to a run directory."""
