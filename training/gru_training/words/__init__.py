"""From text to word ids and vectors."""
