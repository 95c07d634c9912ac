"""Answers to the rows of tables, from file to file or in memory."""
