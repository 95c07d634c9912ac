"""The conversion of texts to word ids and vectors."""
