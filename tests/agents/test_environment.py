"""Settings from the environment: what is set is taken, and what is wrong is named, never its value."""

import pytest

from lamina.sinks.environment import PREFIX, settings_from
from lamina.streams.errors import Misconfigured
from lamina.streams.settings import Settings


def refusal(**variables: str) -> str:
    with pytest.raises(Misconfigured) as refused:
        settings_from(variables)
    return str(refused.value)


def test_nothing_set_is_the_defaults():
    assert settings_from({"PATH": "/bin", "LAMINARIA": "kelp"}) == Settings()


@pytest.mark.parametrize("name", sorted(Settings.model_fields))
def test_every_setting_has_a_variable(name):
    default = Settings.model_fields[name].get_default(call_default_factory=True)
    written = '{"k": "acme"}' if name == "api_keys" else str(default)
    expected = {"k": "acme"} if name == "api_keys" else default
    assert getattr(settings_from({PREFIX + name.upper(): written}), name) == expected


def test_an_override_wins_where_it_is_given():
    variables = {"LAMINA_HTTP_PORT": "1234", "LAMINA_DATA_DIR": "there"}
    settings = settings_from(variables, http_port=0, data_dir=None)
    assert (settings.http_port, settings.data_dir) == (0, "there")


def test_the_clients_key_is_no_setting_and_no_typo():
    assert settings_from({"LAMINA_API_KEY": "k"}) == Settings()


@pytest.mark.parametrize(
    ("variable", "value", "sentence"),
    [
        ("LAMINA_GATE_TAU", "1.5", "LAMINA_GATE_TAU: Input should be less than or equal to 1"),
        ("LAMINA_BATCH_SIZE", "none", "LAMINA_BATCH_SIZE: Input should be a valid integer"),
        ("LAMINA_GATE_ENABLED", "perhaps", "LAMINA_GATE_ENABLED: Input should be a valid boolean"),
        ("LAMINA_BROKERS", "h:1", "LAMINA_BROKERS is no setting: did you mean LAMINA_BROKER?"),
        ("LAMINA_", "x", "LAMINA_ is no setting"),
        ("LAMINA_gate_tau", "x", "LAMINA_GATE_TAU: Input should be a valid number"),
        ("LAMINA_API_KEYS", "", "LAMINA_API_KEYS is not JSON"),
        ("LAMINA_API_KEYS", "null", "LAMINA_API_KEYS: Input should be a valid dictionary"),
        ("LAMINA_API_KEYS", '{"k": 7}', "LAMINA_API_KEYS: Input should be a valid string"),
        ("LAMINA_API_KEYS", '{"k": ""}', "LAMINA_API_KEYS names the tenant ''"),
        ("LAMINA_TENANT", "a b", "LAMINA_TENANT"),
    ],
)
def test_a_wrong_variable_is_named_with_what_is_allowed(variable, value, sentence):
    assert sentence in refusal(**{variable: value})


def test_every_wrong_variable_is_named_at_once():
    sentence = refusal(LAMINA_GATE_TAU="2", LAMINA_HTTP_PORT="-1", LAMINA_X="y")
    for variable in ("LAMINA_GATE_TAU", "LAMINA_HTTP_PORT", "LAMINA_X"):
        assert variable in sentence


@pytest.mark.parametrize("value", ['["sesame"]', '{"sesame": 7}', '{"sesame', '{"sesame": "a b"}', "sesame"])
def test_a_key_is_never_part_of_a_sentence(value):
    assert "sesame" not in refusal(LAMINA_API_KEYS=value)
