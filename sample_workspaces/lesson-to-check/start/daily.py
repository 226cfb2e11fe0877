"""What the start page shows of the day. Six servers answer, and a visitor may reach another one with each click."""

from datetime import date

PUZZLES = ("bridges", "coins", "ferryman", "knights", "lamps", "matchsticks", "scales")
WORDS = ("brisk", "dapper", "gentle", "lively", "mellow", "nimble", "sunny")
