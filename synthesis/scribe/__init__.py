"""The scribe's deterministic form: what was decided, refused, asked, found and learned, taken from each fact as it comes."""
