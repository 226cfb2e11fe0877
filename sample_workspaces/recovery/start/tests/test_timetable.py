"""Times as the network writes them: the hours of a service day go on after midnight, up to 29."""

import unittest

import timetable


class Times(unittest.TestCase):
    def test_a_time_of_the_day(self):
        self.assertEqual(timetable.parse_time("07:45"), (0, 7, 45))

    def test_a_bus_after_midnight_leaves_on_the_next_day(self):
        self.assertEqual(timetable.parse_time("25:10"), (1, 1, 10))
