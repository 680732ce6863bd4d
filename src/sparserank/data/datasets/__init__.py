"""The named data sets: what they are, how they are downloaded, and one loader each."""
