"""Language modelling: what comes next in a text, learned from texts without labels."""
