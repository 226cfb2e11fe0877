"""Width of text in a picture, estimated for any font that its reader may have."""

import unicodedata


def text_width(text: str, size: float, *, mono: bool = False) -> float:
    """Return an upper estimate of a text's width in pixels, because fonts differ."""
    total = 0.0
    for letter in text:
        if unicodedata.east_asian_width(letter) in "WF":
            total += 1.05
        elif mono:
            total += 0.62
        elif letter in "mwMW@%→←":
            total += 0.95
        else:
            total += 0.36 if letter in " .,:;|'!()[]ijlft·" else 0.6 + 0.1 * letter.isupper()
    return total * size
