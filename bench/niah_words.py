"""Words of the haystack: what is talked about, in what sentences, and the facts that may be a needle.

All of it is ours. `{slot}` stands for a word of `SLOTS`. No name or place of a fact occurs in the small talk,
so a needle is like other facts (its distractors) and unlike the rest, as something said once in passing is.
"""

from collections.abc import Mapping
from dataclasses import dataclass

SLOTS: Mapping[str, tuple[str, ...]] = {
    "dish": (
        "lentil soup", "mushroom risotto", "fish tacos", "potato gratin", "pad thai",
        "roast cauliflower", "beef stew", "spinach lasagne", "chickpea curry", "onion tart", "shakshuka",
        "miso ramen", "pumpkin gnocchi", "bean chili",
    ),
    "plant": (
        "tomatoes", "lavender", "runner beans", "the fig tree", "basil", "roses", "the hydrangea",
        "courgettes", "sunflowers", "mint", "the lemon tree", "strawberries", "dahlias", "rhubarb",
    ),
    "sport": (
        "swimming", "climbing", "running", "badminton", "rowing", "cycling", "yoga", "fencing",
        "table tennis", "hiking", "judo", "skating",
    ),
    "thing": (
        "kettle", "printer", "washing machine", "vacuum cleaner", "garden hose", "desk lamp", "toaster",
        "bicycle pump", "radiator", "sewing machine", "speaker", "dishwasher", "old laptop",
        "coffee grinder",
    ),
    "shop": (
        "hardware store", "bakery", "market hall", "pharmacy", "bookshop", "flea market",
        "garden centre", "cheese shop", "charity shop", "supermarket", "bike shop", "stationer",
    ),
    "tune": (
        "jazz", "string quartets", "folk songs", "ambient music", "film scores", "old soul records",
        "choral music", "synth pop", "bluegrass", "piano sonatas",
    ),
    "film": (
        "heist film", "nature documentary", "courtroom drama", "space opera", "silent comedy",
        "detective series", "cooking show", "ghost story", "period drama", "road movie", "chess biopic",
        "disaster film",
    ),
    "weather": (
        "drizzle", "thick fog", "bright sunshine", "a cold wind", "hail", "heavy rain", "a mild breeze",
        "frost", "a heatwave", "thunder", "wet snow", "low cloud",
    ),
    "when": (
        "this morning", "last night", "after lunch", "on the way home", "before breakfast",
        "over the weekend", "in the evening", "between two meetings", "late in the afternoon",
        "after work",
    ),
    "mood": (
        "tiring", "surprisingly fun", "a bit slow", "quite pleasant", "rather chaotic", "calm for once",
        "more work than expected", "better than last time", "noisy", "worth the effort",
    ),
    "work": (
        "quarterly report", "budget sheet", "slides", "interview notes", "release plan", "survey",
        "rota", "grant proposal", "inventory list", "newsletter", "workshop outline", "minutes",
    ),
    "room": (
        "kitchen", "hallway", "study", "bathroom", "attic", "balcony", "cellar", "spare room",
        "living room", "garage",
    ),
}  # fmt: skip
"""The words of each slot."""

TALK: tuple[tuple[str, str], ...] = (
    ("I cooked {dish} {when} and it was {mood}.", "Sounds good. Did you change anything in the recipe?"),
    ("Can you suggest something to go with {dish}?", "A green salad and fresh bread go well with {dish}."),
    (
        "The {plant} look better since I water them {when}.",
        "They often recover quickly. Keep an eye on the soil.",
    ),
    ("Should I move {plant} to the {room}?", "If the {room} gets enough light, it is worth a try."),
    (
        "We had {weather} {when}, so I skipped {sport}.",
        "A rest day does no harm. There is always another time.",
    ),
    ("I went {sport} {when}; it was {mood}.", "Nice. Regular {sport} does help with sleep."),
    ("The {thing} makes a strange noise {when}.", "Try cleaning it first, then check for a loose screw."),
    ("I am thinking of giving the {thing} away.", "The {shop} may take it if it still works."),
    ("The queue at the {shop} was {mood}.", "It is usually quieter {when}."),
    ("Does the {shop} open on holidays?", "Most do not, but hours differ, so a quick call would settle it."),
    ("I listened to {tune} while tidying the {room}.", "That makes chores go faster for many people."),
    ("Recommend me some {tune} for concentrating.", "Slow {tune} without lyrics tends to work best."),
    ("We watched a {film} {when}, which was {mood}.", "Would you watch another {film} by the same people?"),
    ("I fell asleep during the {film}.", "That happens. Perhaps something shorter {when}."),
    ("The {work} took me all day and was {mood}.", "Well done for finishing it. Do you want a summary?"),
    ("How long should the {work} be?", "Two pages are plenty unless somebody asked for more."),
    ("Could you proofread the {work}?", "Of course. Paste it here and I will mark what is unclear."),
    ("I want to paint the {room} in a lighter colour.", "Off-white keeps the {room} bright without glare."),
    ("There is a draught in the {room} whenever we get {weather}.", "A strip of foam along the frame helps."),
    ("They expect {weather} again.", "Then it is a good day for {tune} and {dish}."),
    ("My knees hurt after {sport} {when}.", "Take it easy and warm up longer before the next time."),
    ("Is it too late in the year to plant {plant}?", "For {plant} a few weeks either way rarely matter."),
    ("I sorted the {room} and found the {thing} we had missed.", "Good find. Does it still work?"),
    (
        "The {film} everybody talks about left me cold.",
        "Tastes differ. What did you like about the last one?",
    ),
    ("I might learn {sport} properly.", "A beginners' course would be a gentle start."),
    ("We ran out of things for {dish}.", "The {shop} should have all of it."),
    ("Someone borrowed the {thing} and forgot about it.", "A friendly reminder {when} should do."),
    ("The {work} needs a better title.", "Short and plain works best: say what it is about."),
    ("It was {mood} at the {shop} {when}.", "Did you find what you were looking for?"),
    ("I read in the {room} {when} while there was {weather}.", "That sounds like a quiet hour well spent."),
)
"""What one says, and what the other replies."""

ASIDES: tuple[tuple[str, ...], tuple[str, ...]] = (
    (
        "Not that it matters much.", "It is the same every year.", "I will see how it goes.",
        "At least nobody complained.", "I should have known.", "Maybe I am too impatient.",
        "It took longer than I thought.", "Anyway, that was my day so far.", "You know how these things are.",
    ),
    (
        "Let me know how it goes.", "There is no hurry with that.", "It is a matter of taste, of course.",
        "Is there anything else I can help with?", "Small steps are fine.", "That is quite common.",
        "I can look up more if you like.", "Otherwise leave it for another day.",
    ),
)  # fmt: skip
"""What one adds, and what the other adds, to every second sentence."""

THANKS = (
    "Thanks, I will keep that in mind.", "Got it.", "All right, good to know.", "Understood, thank you.",
    "Okay, noted.", "Good, thanks for telling me.",
)  # fmt: skip
"""Replies to a fact; none repeats it."""


@dataclass(frozen=True, slots=True)
class Fact:
    """A kind of fact: `{who}` is whom or what it is about, `{value}` what is asked for."""

    said: str
    asked: str
    """In the words in which it was said."""
    otherwise: str
    """In other words, but for whom or what it is about."""
    about: tuple[str, ...]
    value: str
    """Its form: `9` a digit, `A` a capital letter, `Word` an invented name."""


_SITES = ("Brackwater", "Larkmoor", "Tessel", "Ofterhill", "Quayside", "Nordhaven", "Pellam", "Winnow")
_PEOPLE = ("Ismene", "Tobias", "Rosalind", "Kenji", "Abena", "Lucjan", "Marguerite", "Oswin")

FACTS: tuple[Fact, ...] = (
    Fact(
        "By the way, the door code of the {who} storage unit is {value}.",
        "What is the door code of the {who} storage unit?",
        "What do I have to type in to open up at {who}?",
        _SITES,
        "9999",
    ),
    Fact(
        "I left the {who} van at bay {value} of the car park.",
        "At which bay of the car park is the {who} van?",
        "Where is the vehicle from {who} standing?",
        _SITES,
        "A99",
    ),
    Fact(
        "The caretaker of the {who} house is called {value}, in case the heating fails.",
        "What is the caretaker of the {who} house called?",
        "Whom should I ring about a cold radiator at {who}?",
        _SITES,
        "Word",
    ),
    Fact(
        "For the {who} office the wifi password was changed to {value}.",
        "What was the wifi password of the {who} office changed to?",
        "How do I get online with my laptop at {who}?",
        _SITES,
        "Word9999",
    ),
    Fact(
        "We agreed to send the {who} parcel with a courier named {value}.",
        "What is the courier named who gets the {who} parcel?",
        "Which delivery company did we choose for {who}?",
        _SITES,
        "Word",
    ),
    Fact(
        "{who} called the new boat {value}.",
        "What did {who} call the new boat?",
        "Under which name does {who} sail?",
        _PEOPLE,
        "Word",
    ),
    Fact(
        "{who} is allergic to {value} resin.",
        "What kind of resin is {who} allergic to?",
        "Which substance must be kept away from {who}?",
        _PEOPLE,
        "Word",
    ),
    Fact(
        "The booking reference of {who}'s train ticket is {value}.",
        "What is the booking reference of {who}'s train ticket?",
        "Which code lets {who} travel by rail?",
        _PEOPLE,
        "AA99A",
    ),
    Fact(
        "{who} grew up in a village named {value}.",
        "What is the village named in which {who} grew up?",
        "Where did {who} spend childhood?",
        _PEOPLE,
        "Word",
    ),
    Fact(
        "{who}'s locker at the pool has number {value}.",
        "Which number does {who}'s locker at the pool have?",
        "Where does {who} put away clothes before swimming?",
        _PEOPLE,
        "999",
    ),
)
"""The kinds of facts. Half of a needle's distractors are of its kind, half about whom it is about."""
