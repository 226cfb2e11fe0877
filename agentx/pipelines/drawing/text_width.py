"""How much room text takes in a picture, whichever font its reader has."""

import unicodedata


def text_width(text: str, size: float, *, mono: bool = False) -> float:
    """How many pixels a text takes, rather more than less: fonts differ.

    Args:
        text: In one line.
        size: Of its letters, in pixels.
        mono: Whether all of them are equally wide.
    """
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
