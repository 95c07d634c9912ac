"""What is measured and shown of any classifier."""
