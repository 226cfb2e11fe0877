"""The words that mean the same in an instruction, in any trade.

A row holds words that may replace each other; none holds two words that a rule could tell apart. Where a word
has several meanings, it is in no row, since a wrong merge is worse than a missed one.
"""

from agentx.synthesis.language.words import SYNONYMS

SAME_MEANING = f"""{SYNONYMS}
check verify inspect examine
repair mend
correct rectify
dispatch despatch
begin commence
run execute execution
finish complete completion
buy purchase procure
choose select selection pick
tell inform notify notification
obtain acquire
preserve retain retention
change modify modification alter alteration
help assist assistance aid
show display
permit allow permission
staff personnel
colleague coworker
customer client clientele
password passphrase
error mistake
invoice bill
doctor physician
lawyer attorney solicitor
car automobile
phone telephone
fridge refrigerator
quantity amount
goal aim objective
salary wage
holiday vacation
supplier vendor
manager supervisor
film movie
parcel package
truck lorry
rubbish garbage trash
large big
small little tiny
fast quick rapid speedy
identical same
whole entire full
broken defective faulty
laboratory lab
exam examination
advertisement advert ad
spell spelling
decide decision
approve approval
sign signature
translate translation
analyse analyze analysis
describe description
explain explanation
compare comparison
store storage
wear worn
hire recruit
quote quotation cite citation
discuss talk
press media journalist
label tag
anonymize anonymise anonymous anonymization
reply response answer
guest visitor
restart reboot
sharpen hone
postpone delay defer
gather collect
throw discard
measure gauge
authorise authorize
silently quietly
exception error
swallow ignore
picture photo image photograph
screenshot screengrab
worker employee staff personnel colleague
british uk
american usa
goods merchandise wares
cargo freight
"""
