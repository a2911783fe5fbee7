from time import process_time

import pytest

from lamina.streams.entities import entities


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("I went to Paris with John Smith.", {"paris", "john smith"}),
        ("We met Dr. Salgueiro at the Bank of Spain", {"salgueiro", "bank of spain"}),
        ("Lena's birthday is on 22 March", {"lena", "22 march"}),
        ("Max is my dog", {"max"}),
        ("Élodie and Øyvind met Zoë", {"élodie", "øyvind", "zoë"}),
        ("Меня зовут Иван Петров", {"иван петров"}),
        ("It cost $1,200.50 or 900 euros", {"$1,200.50", "900 euros"}),
        ("See you at 9:30 am or six o'clock", {"9:30 am", "six o'clock"}),
        ("Every Friday in May, until 2024-06-01", {"friday", "may", "2024-06-01"}),
        ("We leave tomorrow, or next week", {"tomorrow", "next week"}),
        ("write to a.b@c.de, @nora or https://x.org/a", {"a.b@c.de", "@nora", "https://x.org/a"}),
        ("I ran 10 km with two friends", {"10", "two"}),
        ("my iPhone has a USB-C port, made in the U.S.", {"iphone", "usb-c", "u.s"}),
        ("我有 3 只猫", {"3"}),
    ],
)
def test_names_numbers_times_money_and_addresses_are_found(text, expected):
    assert entities(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "Researching agencies is hard",
        "Wow, that is great! Thanks!",
        "The weather is nice. Maybe I should march on.",
        "May I go?",
        "Really? You did? Awesome!",
        "i like jazz",
        "",
    ],
)
def test_a_capital_that_only_opens_a_sentence_is_no_name(text):
    assert entities(text) == frozenset()


def test_a_sentence_opener_is_a_name_where_the_text_writes_it_so_elsewhere():
    assert entities("Ben? I like Ben.") == {"ben"}
    assert entities("Ben?") == frozenset()


def test_the_possessive_and_the_plain_name_are_one_entity():
    assert entities("I saw Nora's dog") == entities("I saw Nora")


@pytest.mark.parametrize(
    "text", ["a" * 256_000, "1," * 128_000, "A " * 128_000, "Aa. " * 64_000, "a.b-" * 64_000]
)
def test_the_largest_turn_is_read_in_linear_time(text):
    begun = process_time()
    entities(text)
    assert process_time() - begun < 5
