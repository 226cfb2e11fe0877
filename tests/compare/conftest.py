"""The drivers need their products, which this environment does not have: they are not collected."""

collect_ignore_glob = ["drivers/*.py"]
