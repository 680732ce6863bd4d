"""The cluster of the tests: the session of the fixture `spark` in the conftest.py of the repository."""

MASTER = "local-cluster[2,1,1024]"
"""Two worker processes of one core each."""
