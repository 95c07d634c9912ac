"""Pictures that reports share."""
