import pytest

from api.cache import disable_cache
from api.transport import UpstreamError


def test_an_answer_is_asked_for_once_in_five_minutes(upstream):
    assert upstream.client.read("/rates") == upstream.client.read("/rates")
    assert upstream.client.calls == 1


def test_an_answer_is_asked_for_again_where_the_cache_is_disabled(upstream):
    read = disable_cache(upstream.client.read)
    upstream.client.read("/rates")
    upstream.change("rates", {"GBP": "0.90"})
    assert read("/rates") == {"GBP": "0.90"}


def test_a_table_is_a_list_of_rows(upstream):
    assert upstream.client.read("/users/u-102/holdings")[0] == {"symbol": "ECHO", "shares": "20", "cost": "49.10"}


@pytest.mark.parametrize("path", ["/nothing", "/../conftest", "/", "/users//u-101"])
def test_what_is_not_there_is_told(upstream, path):
    with pytest.raises(UpstreamError):
        upstream.client.read(path)
