"""What a language model achieves, in figures, pictures and samples."""
