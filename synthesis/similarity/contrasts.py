"""Words that exclude each other: opposites, and the members of closed classes such as days or environments.

Two rules that differ in such a pair are two rules, however alike they read.
"""

from collections.abc import Iterable, Mapping
from functools import cache

from agentx.synthesis.similarity.normal_form import stem_of

_CLASSES = """
monday tuesday wednesday thursday friday saturday sunday weekday weekend
january february march april june july august september october november december
spring summer autumn winter
morning noon afternoon evening night midnight
hourly daily weekly monthly quarterly yearly
second minute hour day week month quarter year
millimetre centimetre metre kilometre inch foot mile
gram kilogram tonne ounce pound
pixel point percent
byte kilobyte megabyte gigabyte kb mb gb tb
euro dollar cent franc yen
development dev staging production sandbox local preview
png jpeg jpg svg gif webp bmp pdf docx odt csv json yaml xml toml html markdown xlsx mp3 wav flac mp4
python javascript typescript java kotlin rust ruby php swift scala bash sql perl haskell
english german french spanish italian portuguese dutch polish russian chinese japanese korean arabic
british american canadian australian
red green blue yellow black white grey orange purple brown transparent
left right
north south east west
top bottom middle start end
header footer body sidebar
chapter section paragraph sentence word line page
figure table equation
heading caption footnote title
function class method module variable constant
request response
error warning info debug
client server
frontend backend
row column
unit integration e2e smoke
doctor nurse patient
teacher student parent pupil
author editor reviewer translator
buyer seller
tenant landlord
plaintiff defendant
manager intern contractor
wood metal glass plastic stone
fish beef pork chicken lamb
kitchen bathroom bedroom cellar
present past future
first second third last
"""
"""Each row is a closed class, of which no two members are the same thing."""

_OPPOSITES = """
add/remove add/delete add/drop create/delete create/remove insert/delete archive/delete keep/delete
keep/discard keep/remove make/remove save/discard enable/disable open/close start/stop begin/finish
allow/forbid allow/deny permit/forbid accept/reject accept/refuse approve/reject include/exclude
encrypt/decrypt encode/decode import/export upload/download push/pull lock/unlock show/hide
increase/decrease increase/reduce raise/lower raise/reduce rise/fall rise/drop grow/shrink expand/collapse
merge/split install/uninstall mount/unmount load/unload connect/disconnect subscribe/unsubscribe
publish/withdraw pass/fail succeed/fail success/failure successful/failed read/write attach/detach
pack/unpack compress/decompress freeze/thaw heat/cool hot/cold warm/cool wet/dry public/private
internal/external inner/outer old/new early/late fast/slow big/small long/short wide/narrow wider/narrower
high/low thick/thin heavy/light minimum/maximum min/max ascending/descending uppercase/lowercase
upper/lower synchronous/asynchronous sync/async manual/automatic manually/automatically optional/mandatory
draft/final male/female adult/child formal/informal singular/plural active/passive horizontal/vertical
positive/negative debit/credit income/expense gross/net incoming/outgoing inbound/outbound
upstream/downstream online/offline indoor/outdoor indoors/outdoors raw/cooked raw/processed paid/unpaid
signed/unsigned known/unknown empty/full simple/complex cheap/expensive safe/dangerous rich/poor
strong/weak soft/hard sweet/salty live/recorded input/output source/target key/value local/remote
local/global before/after above/below praise/criticise reward/punish hire/dismiss relative/absolute
round/exact wrap/unwrap pin/unpin mute/unmute backup/restore deploy/revert commit/revert sorted/unsorted
verbose/quiet strict/lenient direct/indirect
"""


def _rows(table: Iterable[list[str]]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for row in table:
        stems = {stem_of(word) for word in row} - {""}
        for one in stems:
            found.setdefault(one, set()).update(stems - {one})
    return found


@cache
def _classes() -> Mapping[str, set[str]]:
    return _rows(row.split() for row in _CLASSES.splitlines())


@cache
def _opposites() -> Mapping[str, set[str]]:
    return _rows(pair.split("/") for pair in _OPPOSITES.split())


def is_of_a_class(word: str) -> bool:
    """Return whether a stem is a member of a closed class, so that it limits what a rule applies to."""
    return word in _classes()


def is_contrasted(word: str) -> bool:
    """Return whether a stem is in these tables, so that it has no other counterpart than itself."""
    return word in _classes() or word in _opposites()


def exclude(one: str, other: str) -> bool:
    """Return whether two stems name things that exclude each other.

    >>> exclude(stem_of("Tuesday"), stem_of("Thursday")), exclude(stem_of("plot"), stem_of("figure"))
    (True, False)
    """
    return other in _classes().get(one, ()) or other in _opposites().get(one, ())
