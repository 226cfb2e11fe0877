from datetime import date
from decimal import Decimal

import pytest

from api import services


def test_users_come_by_name():
    assert [user.name for user in services.get_users()] == ["Jonas Lind", "Mira Okafor"]


def test_an_unknown_user_is_told():
    with pytest.raises(services.UnknownUser):
        services.get_user("u-999")


def test_users_are_found_by_address_too():
    assert [user.id for user in services.find_users("EXAMPLE.ORG")] == ["u-102"]


def test_holdings_come_by_symbol():
    assert [holding.symbol for holding in services.get_user_holdings("u-101")] == ["ALDR", "CORV", "DELT"]


def test_the_latest_payment_can_come_first():
    assert services.get_user_transactions("u-101", newest_first=True)[0].id == "t-6"


def test_who_watches_nothing_has_an_empty_watchlist():
    assert services.get_user_watchlist("u-102") == []


def test_a_setting_that_was_never_chosen_has_a_default():
    assert services.get_user_settings("u-101") == {"theme": "dark", "weekly_mail": True, "rows": 25}


def test_the_first_page_says_what_everything_is_worth():
    page = services.user_page("u-101")
    assert (page["value"], page["gain"], page["today"]) == ("€4,198.00", "+16.1%", "+3.1%")
    assert page["allocation"] == {"Materials": "39.3%", "Technology": "37.9%", "Transport": "22.9%"}
    assert page["payments"][0] == "13 Mar 2026  dividend  €9.60"


def test_the_first_page_is_in_the_users_currency():
    assert services.user_page("u-102")["value"] == "£1,930.35"


def test_holdings_as_text_end_with_their_sum():
    assert services.holdings_table("u-102").splitlines()[-1].split() == ["total", "€2,271.00", "+4.1%"]


def test_payments_are_summed_by_kind_and_month():
    page = services.payments_page("u-101")
    assert page["balance"] == "€416.00"
    assert page["by_kind"]["dividend"] == "€32.00"
    assert list(page["by_month"]) == ["2026-01", "2026-02", "2026-03"]
    assert services.dividends_of(services.get_user_transactions("u-101"), 2026) == Decimal("32.00")


def test_watched_shares_come_in_the_users_order_and_unknown_ones_are_left_out():
    assert [row["symbol"] for row in services.watchlist_page("u-101")] == ["ECHO", "BRIO"]


def test_a_holiday_and_a_weekend_are_no_trading_days():
    holidays = services.get_holidays(2026)
    assert services.next_trading_day(date(2026, 4, 2), holidays) == date(2026, 4, 7)
