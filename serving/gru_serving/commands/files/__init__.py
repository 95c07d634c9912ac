"""Files of users that commands read: texts to score, series, and what turned out to be true."""
