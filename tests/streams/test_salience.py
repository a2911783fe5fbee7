from time import process_time

import pytest

from lamina.streams.salience import salience_of
from lamina.streams.salience_rules import HINTS, RULES

SAFETY = [
    "I'm allergic to penicillin",
    "peanuts could kill him",
    "she has a severe nut allergy",
    "I have type 1 diabetes",
    "I'm on warfarin",
    "My son is allergic to bees.",
    "I've got a shellfish allergy.",
    "Allergic to latex, by the way.",
    "My daughter was diagnosed with epilepsy last year.",
    "I carry an EpiPen because of wasps.",
    "I can't tolerate ibuprofen",
    "He's diabetic.",
    "I take insulin twice a day.",
    "My husband has a heart condition.",
    "Mom is on blood thinners.",
    "I'm lactose intolerant.",
    "I have celiac disease",
    "I'm pregnant!",
    "A bee sting would be fatal for me",
    "Shellfish makes my throat swell.",
    "I had an anaphylactic shock after eating cashews",
    "My blood type is O negative.",
    "I suffer from chronic migraines",
    "Tom is severely allergic to cats",
    "I take 20 mg of lisinopril",
    "I was prescribed amoxicillin and it gave me hives",
    "Just a heads-up: sesame allergy here.",
    "we found out Leo can't have nuts, he goes into shock",
    "He has asthma.",
    "I'm taking methotrexate for my arthritis",
    "My doctor put me on lithium",
    "If I eat peanuts my throat closes.",
    "I have allergies to nuts and shellfish",
    "my daughter has a life-threatening peanut allergy",
    "penicillin gives me hives",
    "I can't have penicillin",
    "I have a pacemaker",
    "I'm a type 2 diabetic",
    "aspirin is dangerous for me",
    "I get anaphylaxis from wasp stings",
    "I have high blood pressure",
    "She is deathly allergic to strawberries.",
    "Eating gluten makes me really sick",
    "I use an inhaler for my asthma",
    "Grandpa has dementia",
    "my kid reacts badly to eggs, last time we ended up in the ER",
    "I'm allergic to most reptiles and animals with fur",
    "Even a trace of peanut will kill my brother.",
    "I react to penicillin",
    "no shellfish for me, I'd end up in hospital",
    "I've been on antidepressants since March",
    "I have an allergy to codeine",
    "I stopped taking warfarin",
    "nuts are off limits for Sam, he's allergic",
    "my wife is coeliac",
    "I am hypertensive",
    "Penicillin allergy!",
    "I've had two heart attacks.",
    "I am epileptic",
    "I'm a diabetic",
    "Just so you know, I've got asthma",
    "Mia has a peanut allergy",
    "The doctor says I have hypertension",
    "I was diagnosed with lupus in 2019",
    "my mother takes blood pressure medication",
    "I'm severely lactose-intolerant",
    "I am allergic to sulfa drugs",
    "I'm currently on Eliquis",
    "I take Lipitor every night",
    "We have a nut allergy in the family",
    "She's anaphylactic to bee stings",
    "My dog is allergic to chicken",
    "He carries an inhaler",
    "I break out in hives when I eat strawberries",
    "Our baby is allergic to cow's milk",
    "I have a severe allergy to shellfish",
    "Sulfites trigger my asthma",
    "I'm recovering from a heart attack",
    "I had a stroke last year",
    "I need to avoid grapefruit because of my medication",
    "My kidneys are failing",
    "I have epilepsy, so no strobe lights",
    "Dad has Alzheimer's",
    "I'm HIV positive",
    "i'm allergic to penicillin",
    "IM ALLERGIC TO NUTS",
    "I am allergic to nuts, please don't suggest recipes with them.",
    "Peanuts are deadly for my daughter",
    "One peanut and she stops breathing",
    "Shrimp could kill me.",
    "I have Type 1 diabetes and wear an insulin pump",
    "I am on blood pressure meds",
    "My wife is pregnant with our second child",
    "I'm intolerant to gluten",
    "I'm on chemo right now",
    "she is taking warfarin",
    "he has a heart murmur",
    "Ben is an asthmatic",
    "Don't give me penicillin",
    "I cannot take aspirin",
    "My son Leo has type 1 diabetes",
    "I've been diabetic since I was ten",
    "I have got a bad latex allergy",
]

REMEMBER = [
    "Remember that my meeting moved to Tuesday.",
    "Please remember I hate cilantro.",
    "Don't forget my sister is visiting on Friday.",
    "Don't forget to renew my passport",
    "Can you remember that I prefer window seats?",
    "Keep in mind that I work nights.",
    "Remind me to call the bank.",
    "Note that the API key rotates monthly.",
    "For future reference, I prefer metric units.",
    "remember: the gate code is on the fridge",
    "Don't forget that I'm a night owl",
    "Remember my wifi password is hunter2",
    "please keep in mind I'm on a budget",
    "Make a note: the plumber comes Tuesday",
    "Don't forget I hate olives",
    "Please remember to use British spelling",
    "I'd like you to remember that my favorite color is green",
    "Remind me to water the plants",
]

CONSTRAINT = [
    "I can't eat pork.",
    "Never book flights before 9 am.",
    "I'm vegan",
    "I don't drink alcohol.",
    "Please never email me at work.",
    "She doesn't eat meat.",
    "The budget has to stay under 6,000 euros.",
    "I can't fly because of my ears",
    "Always use metric units in my reports",
    "Don't call me before noon",
    "I am a vegetarian, so no chicken",
    "We keep kosher.",
    "never schedule meetings on Fridays",
    "He must not drive at night",
    "Our hotel must be wheelchair accessible",
    "I'm not allowed to drive until June",
    "My brother can't eat tree nuts, they close his airway",
    "I use a wheelchair",
    "Never book me a middle seat",
    "I can't eat gluten",
    "Please don't ever call my office",
    "I avoid pork for religious reasons",
    "I only eat halal food",
    "I don't eat meat",
    "We can't spend more than $2000 on the trip",
    "never use my real name",
]

IDENTITY = [
    "My name is Nora.",
    "I live in Hamburg, so everything is flat.",
    "I moved to Lisbon in May.",
    "I work at Hafenlab as a product designer",
    "My birthday is on 22 March",
    "I'm from Sweden originally",
    "My wife's name is Lena.",
    "Call me Ben.",
    "My sister's birthday is 3 June",
    "I was born in 1984",
    "We live in Boston now",
    "I'm moving to Lisbon on 3 May.",
    "I work as a nurse",
    "My dog's name is Knut",
    "I'm 34 years old",
    "I just moved to Berlin",
    "My hometown is Porto",
    "My pronouns are they/them",
    "I'm Nora, I live in Porto",
    "My name's Jon",
    "We just moved to Chicago",
    "I work for Siemens",
    "I grew up in Ohio",
    "My daughter is called Ida",
    "I turned 40 last week",
    "My anniversary is June 4",
    "I started a new job at Google",
    "I'm a nurse at St. Mary's",
    "I got married last weekend",
    "My address is 12 Elm Street",
]

CONTACT = [
    "My email is nora@example.org",
    "You can reach me at +49 170 1234567",
    "my phone number is 555-867-5309",
    "My membership number is LX-20417",
    "Call me on 555 123 4567",
    "My passport number is C01X00T47",
    "Reach me at jo@x.io",
    "My number is 0171 2345678",
    "my cell is (555) 123-4567",
    "My new email: kim.lee@mail.com",
]

DEADLINE = [
    "The grant application is due on 15 April",
    "The report is due Friday",
    "I have to submit the thesis by Friday",
    "The deadline is next Monday",
    "We need to finish this by the end of the month",
    "My visa expires on 3 June",
    "Rent is due tomorrow",
    "I need to send the draft by noon",
    "Taxes must be filed by April 15",
    "The paper is due by Monday",
    "Assignment due tomorrow at 5pm",
    "Submit the form before June 3",
    "My flight leaves by 6 am... I have to pack by tomorrow",
    "The application deadline is March 1st",
    "My passport expires in 2027",
    "The proposal has to be in by next Friday",
    "due date: 5 May",
    "I need this done by EOD",
]

DECISION = [
    "I decided to take the job",
    "We agreed to split the rent",
    "We've decided on Portugal",
    "We settled on the blue tiles",
    "Let's go with option B",
    "I've made up my mind",
    "We have agreed that Tom pays",
    "I have decided that I'm quitting",
    "We decided against the move",
    "I've decided to move to Spain",
    "We agreed on 50/50",
    "I'm going with the blue one",
    "We chose Lisbon over Porto",
    "We have decided to postpone the launch",
    "I decided against surgery",
    "We're going to go with vendor A",
    "Final decision: we ship on Monday",
]

CASUAL = [
    "Are you allergic to anything?",
    "I'm allergic to Mondays",
    "This heat is killing me",
    "My mom would kill me",
    "I remember that trip so well",
    "I'll never forget that day",
    "Don't forget to have fun!",
    "Remember, you've got this!",
    "Never give up on your dreams",
    "Don't forget to believe in yourself",
    "I can't eat another bite",
    "I can't wait to see you",
    "I have a dog",
    "I have a meeting later",
    "I work hard every day",
    "I live for moments like these",
    "I love living by the sea",
    "It works well in practice",
    "We moved the sofa",
    "That movie moved me to tears",
    "I'm due for a break",
    "By the way, nice car",
    "I stood by Friday's decision wall",
    "We agree, it's lovely",
    "I agree with you",
    "Good decision!",
    "It was a tough decision",
    "I might decide later",
    "The movie is due to its music great",
    "The plot is diabetic-friendly, haha",
    "You should try yoga",
    "Have a great day!",
    "The weather is nice today",
    "I always love your cooking",
    "I never knew that",
    "Always look on the bright side",
    "Always good to see you",
    "Never mind",
    "Never better!",
    "Don't call it a day yet",
    "She can't stop laughing",
    "He never eats breakfast with us",
    "I don't eat out much",
    "That's to die for",
    "I'm dying to see it",
    "The sunset was breathtaking",
    "I started a new painting yesterday",
    "We had dinner at a nice place",
    "How do you remember all of this?",
    "Do you remember my birthday?",
    "What's your phone number?",
    "When is the deadline?",
    "I named the sourdough starter Gerda",
    "The concert by Coldplay was amazing",
    "I walked by the park before noon",
    "I read the book by Tuesday's author",
    "We took a walk by the river",
    "My email is overflowing",
    "Call me crazy, but I like it",
    "Call me later",
    "I go by bike",
    "My dog is so cute",
    "I ran 10 km in 72 minutes",
    "Their chemistry on stage kills me",
    "I'm on vacation",
    "I'm on my way",
    "She's on fire today",
    "He's on top of things",
    "I take photos",
    "I take my dog for a walk",
    "We use paper plates",
    "My name-sake festival was fun",
    "I'm from a big family",
    "I was born to dance",
    "Thanks for reminding me!",
    "Note the great colors in this painting",
    "Her birthday party was fun",
    "It was due to the rain",
    "I'm so proud of you for taking part",
    "Nothing can kill the mood",
    "I've been working on my project with passion",
    "I hope I can work with you soon",
    "Life is short",
    "The doctor on the show is funny",
    "My stomach hurts from laughing",
    "This game is addictive",
    "I can't drink and dance at once",
    "Let's go with the flow",
    "I have to be somewhere by the beach",
]


ALL = {
    "safety": SAFETY,
    "remember": REMEMBER,
    "constraint": CONSTRAINT,
    "identity": IDENTITY,
    "contact": CONTACT,
    "deadline": DEADLINE,
    "decision": DECISION,
}


@pytest.mark.parametrize("text", SAFETY)
def test_a_stated_allergy_illness_or_medicine_is_never_missed(text):
    assert salience_of(text) == "safety"


@pytest.mark.parametrize(
    ("rule", "text"), [(rule, text) for rule in ALL if rule != "safety" for text in ALL[rule]]
)
def test_a_plain_statement_fires_its_rule(rule, text):
    assert salience_of(text) == rule


@pytest.mark.parametrize("text", CASUAL)
def test_casual_talk_fires_no_rule(text):
    assert salience_of(text) is None


@pytest.mark.parametrize(
    "text",
    [
        "I'm allergic to penicillin, can I take amoxicillin?",
        "What should I cook, my son has a peanut allergy?",
        "Since I have type 1 diabetes, what can I eat?",
        "Did you know she's allergic to bees?",
    ],
)
def test_what_a_question_states_about_health_is_not_missed(text):
    assert salience_of(text) == "safety"


@pytest.mark.parametrize(
    "text",
    ["Do you have asthma?", "Is he allergic to dogs?", "Does she have a nut allergy?", "Do I have asthma?"],
)
def test_a_question_about_health_states_nothing(text):
    assert salience_of(text) is None


@pytest.mark.parametrize("text", [text for texts in ALL.values() for text in texts])
def test_a_statement_fires_within_a_longer_turn(text):
    assert salience_of(f"Hey, good to see you! {text}! How was your day?") is not None


@pytest.mark.parametrize("rule", HINTS)
def test_the_hints_of_a_rule_hide_no_match(rule):
    for text in [text for texts in ALL.values() for text in texts]:
        if RULES[rule].search(text):
            assert any(hint in text.casefold() for hint in HINTS[rule])


def test_the_rules_are_the_closed_set():
    assert list(RULES) == ["remember", "safety", "constraint", "identity", "contact", "deadline", "decision"]


def test_a_photo_caption_is_not_a_statement():
    assert salience_of("Look at this! [photo: a sign that says I'm allergic to nuts]") is None


def test_typographic_apostrophes_change_nothing():
    assert salience_of("I’m allergic to penicillin") == "safety"


@pytest.mark.parametrize(
    "text",
    ["a" * 256_000, "my name " * 32_000, "I can't have 1 " * 16_000, "allergic " * 28_000, "1 " * 128_000],
)
def test_the_largest_turn_is_read_in_seconds(text):
    begun = process_time()
    salience_of(text)
    assert process_time() - begun < 10
