"""The files of users that commands read: texts to score, series, true outcomes."""
