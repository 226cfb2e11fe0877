"""Tally keeps books in a text file: every entry says where money came from and where it went."""
