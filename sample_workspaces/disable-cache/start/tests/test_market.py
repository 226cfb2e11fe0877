from datetime import date
from decimal import Decimal

import pytest

from api import services
from api.models import DailyPrice, Holding, Quote


def quote(symbol="ABC", price="110", previous="100", sector="Technology"):
    return Quote(symbol, symbol.title(), sector, Decimal(price), Decimal(previous))


def prices(*closes):
    return [DailyPrice(date(2026, 3, 1 + number), Decimal(close)) for number, close in enumerate(closes)]


def test_a_position_is_valued_at_todays_price():
    one = services.position(Holding("ABC", Decimal(3), Decimal(90)), quote())
    assert (one.value, one.gain, one.gain_percent, one.today) == (330, 60, Decimal("22.2"), 30)


def test_a_holding_without_a_quote_is_left_out():
    assert services.positions([Holding("XYZ", Decimal(1), Decimal(1))], {"ABC": quote()}) == []


def test_nothing_has_no_gain():
    assert services.total([]).gain_percent == 0
    assert services.allocation([]) == {}


def test_what_makes_too_much_of_the_whole_is_named():
    quotes = {"ABC": quote(), "DEF": quote("DEF", "10", "10")}
    holdings = [Holding("ABC", Decimal(1), Decimal(1)), Holding("DEF", Decimal(1), Decimal(1))]
    assert services.concentration(services.positions(holdings, quotes)) == ["ABC"]


def test_movers_are_those_that_moved_most_and_what_stood_still_is_neither():
    risen, fallen = services.movers(services.get_quotes().values(), 1)
    assert [one.symbol for one in risen + fallen] == ["CORV", "BRIO"]
    assert "DELT" not in [one.symbol for group in services.movers(services.get_quotes().values()) for one in group]


def test_an_average_starts_where_there_are_enough_days():
    assert services.moving_average(prices(1, 2, 6), 2) == [
        (date(2026, 3, 2), Decimal("1.50")),
        (date(2026, 3, 3), Decimal("4.00")),
    ]
    with pytest.raises(ValueError, match="at least one day"):
        services.moving_average(prices(1), 0)


def test_the_largest_fall_is_from_a_height_to_a_later_low():
    assert services.largest_fall(prices(50, 100, 80, 120, 90)) == Decimal("25.0")


def test_prices_can_be_of_the_last_days_only():
    assert [price.day for price in services.get_prices("ALDR", 3)][-1] == date(2026, 3, 20)
    assert len(services.get_prices("ALDR", 3)) == 3
    with pytest.raises(services.UnknownSymbol):
        services.get_prices("ZZZZ")


def test_amounts_are_written_for_people():
    assert services.money(Decimal("-1204.505")) == "-€1,204.51"
    assert services.money(Decimal(3), "CHF") == "CHF 3.00"
    assert services.signed(Decimal("1.2")) == "+1.2%"


def test_other_currencies_are_converted_by_the_rate():
    rates = services.get_exchange_rates()
    assert services.convert(Decimal(100), rates, "USD") == Decimal("110.00")
    with pytest.raises(ValueError, match="no rate"):
        services.convert(Decimal(1), rates, "XXX")


def test_the_market_page_is_computed_once_a_minute(upstream):
    first = services.market_page()
    upstream.change("quotes", [])
    assert services.market_page() == first
    assert first["risen"][0] == "CORV +5.2%"


def test_a_shares_page_tells_its_month():
    assert services.share_page("CORV")["price"] == "€132.50"
