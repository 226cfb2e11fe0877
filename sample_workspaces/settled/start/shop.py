"""A bicycle shop: what it sells, and what it owes."""

PRICES = {"bell": 9.5, "lamp": 24.0, "tube": 6.0}


def total(order: dict[str, int]) -> float:
    """Return the price of an order."""
    return sum(PRICES[name] * number for name, number in order.items())
