"""Each function of daily.py that ends in `_of_the_day` says the same for a day, whichever process is asked."""

import subprocess
import sys
import unittest

ASKED = """
import daily
from datetime import date, timedelta
days = [date(2026, 3, 1) + timedelta(days=n) for n in range(14)]
shown = {name: [f(day) for day in days] for name, f in vars(daily).items() if name.endswith("_of_the_day")}
print(shown)
"""


def shown():
    return subprocess.run([sys.executable, "-c", ASKED], capture_output=True, text=True, check=True).stdout


class OfTheDay(unittest.TestCase):
    def test_every_server_shows_the_same(self):
        self.assertEqual(shown(), shown())
