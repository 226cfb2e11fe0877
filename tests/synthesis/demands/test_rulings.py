"""Which things a sentence rules out, by its grammar, and whether that becomes a standing rejection."""

import pytest

from agentx.synthesis.demands.classify import Rejection
from agentx.synthesis.demands.reading.rulings import ruled_out_in, things_ruled_out
from agentx.synthesis.demands.tables.rulings import RULINGS
from tests.demand_findings import findings

LASTING = """
Heroku is banned in this company | Heroku
we're done with Gulp for good | Gulp
As of this week Prisma is forbidden in the backend. | Prisma
Inline styles have no place in our theme | Inline styles
keep Sass out of this repo | Sass
no more git submodules around here | git submodules
The idea with the QR codes is buried. | QR codes
Nobody installs Ansible on this machine any more | Ansible
We aren't scraping Instagram, full stop. | scraping Instagram
there'll be no Cypress tests any more | Cypress tests
""".strip().splitlines()

PERHAPS = """
we're not doing Bulma | Bulma
I've had it with Webpack | Webpack
we've said no to Google Fonts | Google Fonts
Raffles: no, they cost us last year's profit | Raffles
Kafka needs a team of its own, so it's ruled out for the sensors | Kafka
Vue isn't an option for the portal | Vue
Kein MongoDB mehr | MongoDB
pas de jQuery dans ce projet | jQuery
SOAP and XML-RPC are ruled out | SOAP, XML-RPC
Firebase burned us twice. | Firebase
pie charts are out of the annual report | pie charts
our choirmaster can't abide Finale | Finale
We stopped using Poetry and nobody shall bring it back. | Poetry
feature toggles? been there, never again | feature toggles
In the choir archive there are to be no MP3s, only FLAC. | MP3s
mocks? no. real database in the tests, always | mocks
Redux? God no. | Redux
gulp belongs to 2015. | gulp
We've ripped out Sentry, and it must not creep back in. | Sentry
Consul gave us nothing but grief, we're shot of it. | Consul
The ban on drones stands. | drones
RabbitMQ got us paged four weekends in a row. It does not come back. | RabbitMQ
We got rid of Elasticsearch in March and I'm not having it back. | Elasticsearch
Let's bury the microservices idea once and for all. | microservices
Labels, glitter: all forbidden in the archive. | Labels, glitter
Jenkins is dead to us. Same goes for Travis. | Jenkins, Travis
Kubernetes? We looked at it and the answer is no. | Kubernetes
Anything but Salesforce for the donors. | Salesforce
We use Polars, not pandas. | pandas
The board said no to Mailchimp. | Mailchimp
web sockets were a mistake. | web sockets
Legal vetoed Hotjar. | Hotjar
There is a ban on carousels in this shop. | carousels
Celery is off our menu. | Celery
Under no circumstances will we use Elasticsearch. | Elasticsearch
We replaced Redux with signals, don't reintroduce it. | Redux
Datadog is too expensive, so no. | Datadog
RabbitMQ is not an acceptable choice for us. | RabbitMQ
""".strip().splitlines()

LEFT = """
the build is out of date
status: no errors
the server is over capacity
the migration is finished
the table has no rows
we won't make it today
we don't want to break the build
we are done with the review
the release is out
stop the server
no problem, go ahead
is Redis off the table?
we don't know
the new version is out, please update
Not sure about the naming again
Nobody writes by hand into src/api/generated
the tests are not getting into the cache
I want the border gone
use tabs, not now
We moved off topic, back to the parser
The parser doesn't allow tabs
A migration that already ran is history
Rust: no .unwrap() in src/
""".strip().splitlines()


@pytest.mark.parametrize("row", RULINGS, ids=lambda row: row.name)
def test_each_wording_takes_its_example_and_leaves_the_other(row):
    found = ruled_out_in(row.takes)
    assert found
    assert found.wording == row.name
    other = ruled_out_in(row.leaves)
    assert other is None or other.wording != row.name


@pytest.mark.parametrize("line", LASTING)
def test_a_thing_that_is_ruled_out_for_good_is_an_active_rejection(line):
    said, _, thing = line.partition(" | ")
    (rejection,) = (one for one in findings(said) if isinstance(one, Rejection))
    assert rejection.certainty == "active"
    assert rejection.idea.casefold() == thing.casefold()


@pytest.mark.parametrize("line", PERHAPS)
def test_a_thing_that_is_turned_down_is_at_least_a_candidate(line):
    said, _, things = line.partition(" | ")
    assert things_ruled_out(said) == tuple(things.split(", "))
    assert findings(said)


@pytest.mark.parametrize("said", LEFT)
def test_what_rules_nothing_out_names_no_thing(said):
    assert things_ruled_out(said) == ()
