"""What directing takes in tokens, in its short form: less than the history, the more so the longer it goes."""

from xml.etree import ElementTree as ET

import pytest

from tests.simulate_director import LISTS, directing, play, plot


@pytest.fixture(scope="module")
def played():
    return play(24)


def test_a_director_takes_less_than_the_whole_history_and_the_more_so_the_longer_it_goes(played):
    def ratio(runs):
        return sum(run.history for run in runs) / sum(run.executor + run.director for run in runs)

    assert played.again == 0
    assert ratio(played.spent) > 1.5
    assert ratio(played.spent[12:]) > 2 * ratio(played.spent[:12])


def test_the_picture_has_a_line_for_each_way_and_a_dot_for_each_directive(played):
    drawn = ET.fromstring(plot(played.spent))
    lines = drawn.findall(".//{http://www.w3.org/2000/svg}polyline")
    assert [len(line.get("points", "").split()) for line in lines] == [25] * 2
    dots = drawn.findall(".//{http://www.w3.org/2000/svg}circle")
    assert len(dots) == sum(run.director > 0 for run in played.spent) == 4


def test_a_shorter_list_in_the_prompt_costs_less_and_nothing_is_mailed_again_for_it():
    bounded = play(24, directing(LISTS["sent, and shown in the last 5 runs"]))
    whole = play(24, directing(LISTS["all that was sent"]))
    assert bounded.spent[-1].executor < whole.spent[-1].executor / 1.5
    assert (whole.again, bounded.again, bounded.mailed) == (0, 0, whole.mailed)
