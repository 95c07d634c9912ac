"""Answers to the rows of tables: on their way from a file to a file, or in memory."""
