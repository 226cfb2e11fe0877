from api.cache import TTLCache, cached, disable_cache, is_disabled


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


def test_a_value_is_kept_until_it_is_too_old():
    clock = Clock()
    cache = TTLCache(10, 2, clock)
    cache.put("a", 1)
    clock.now = 10
    assert cache.get("a") == 1
    clock.now = 10.1
    assert cache.get("a") is None
    assert len(cache) == 0


def test_the_value_used_longest_ago_goes_first():
    cache = TTLCache(10, 2, Clock())
    cache.put("a", 1)
    cache.put("b", 2)
    cache.get("a")
    cache.put("c", 3)
    assert (cache.get("a"), cache.get("b"), cache.get("c")) == (1, None, 3)


def test_a_cached_function_is_called_once_for_the_same_arguments():
    calls = []

    @cached(ttl_s=60)
    def double(number):
        calls.append(number)
        return 2 * number

    assert [double(2), double(2), double(3)] == [4, 4, 6]
    assert calls == [2, 3]


def test_a_function_with_the_cache_disabled_goes_past_the_caches_of_those_it_calls():
    calls = []

    @cached(ttl_s=60)
    def count():
        calls.append(is_disabled())
        return len(calls)

    @disable_cache
    def count_afresh():
        return count()

    assert [count(), count_afresh(), count_afresh(), count()] == [1, 2, 3, 1]
    assert calls == [False, True, True]
    assert not is_disabled()
