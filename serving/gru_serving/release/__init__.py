"""Taking a version live: golden requests, verification, labels."""
