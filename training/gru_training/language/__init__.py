"""Language modelling: the prediction of the next token, learned from texts without labels."""
