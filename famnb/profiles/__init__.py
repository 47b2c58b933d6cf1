"""Profiles: the APIs of vendors as values, in a file each, and one for those that follow OpenAI.

    famnb.connect("openai")                                # with the key of OPENAI_API_KEY
    famnb.Client(profile="open", base_url="http://gpu:8080")     # any server that speaks one of the dialects
    famnb.profiles.find_profile("vllm").endpoints["chat"].request.model_fields
    help("famnb.profiles.vllm")                            # what is special about it, and the vendor's page
    help("famnb.profiles.compatible")                      # the same of Gemini, Azure, DeepSeek, Groq, Mistral, xAI …

A profile has the vendor's endpoints, each with its path, request model and suggested models, the variables that may
hold key and address, the header of the key, and headers that every request has. `client.compose(endpoint, prompt, …)`
makes a request of it, `famnb.Composer(client)` is a form of its fields, `famnb.calls()` has its name in the column
`profile`, and a variant of an experiment or a board may have a `client` of its own. A field that a profile does not
have goes into `extra_body={…}`. A price may be of one service: `famnb.prices.set(…, service="openrouter")`.

One's own service is a profile too, which replay, experiments and workers of Dask then know by its name:

    famnb.profiles.register(
        famnb.profiles.Profile(
            name="mine",
            endpoints=famnb.profiles.vendor_endpoints(
                ("my-model",), famnb.profiles.find_profile("open").endpoints["chat"].request
            ),
            base_url="https://llm.example.com",
            key_variables=("MINE_API_KEY",),
        )
    )
    famnb.connect("mine")

To add a vendor that is OpenAI but for a few fields: in `compatible.py` its request, a row in `_ROWS` and a line in the
docstring, and its name in `_COMPATIBLE` here. To add another: its file, whose `PROFILE` is the value, and its name in
`NAMES`. A request is built of tables of fields: of `SERVER_CHAT` of `open.py`, or those of `request/vendor_fields.py`,
what the vendor takes, and rows of its own. Its `cap` and its traits are not in a table: see `GroqChatRequest` and
`MistralChatRequest`. A field that no other profile has goes into `Fields` of `client/ask_fields.py` as well. The
docstring of `Client` and the table of the users' README name the profile, and so do `PATHS` in `vendors.py` and `SENT`
in `test_sent.py` of its tests, with tools of its own `OWN_TOOLS` too. `pytest tests/profiles` fails where one of these
is missing; whether the fields and limits are the vendor's, `help` of the request shows.

Replies are read alike for all vendors: on chat completions a new name of a count goes into `_read_usage`, one of the
field with the thinking into `_THINKING_FIELDS`, both in `wire/chat.py`. A profile has no prices: users set them, and
the built-in ones are those of the API's document alone. Nothing else matches on its name, but for the vendors that
OpenTelemetry calls by another, in `export.py`.
"""

from __future__ import annotations

import importlib

from famnb.endpoints import ENDPOINTS, Endpoints
from famnb.errors import InvalidRequest
from famnb.profiles.profile import Profile as Profile
from famnb.profiles.profile import vendor_endpoints as vendor_endpoints

DEFAULT = "fam"
"""The profile of a client that names none."""
_COMPATIBLE = ("gemini", "azure", "deepseek", "groq", "mistral", "xai", "together", "bedrock", "vertex")
NAMES = ("fam", "openai", "anthropic", "openrouter", *_COMPATIBLE, "ollama", "vllm", "local", "open")
"""The names of famnb's own that `famnb.Client(profile=…)` takes."""
VENDOR_NAMES = tuple(name for name in NAMES if name not in (DEFAULT, "local"))
"""Those of services that are not famnb's own."""
_registered: dict[str, Profile] = {}


def register(profile: Profile) -> Profile:
    """Make a profile known by its name in this process, in place of one that was registered by it; return it.

    Raises InvalidRequest if it is not a profile, or if its name is that of a built-in one.
    """
    if not isinstance(profile, Profile):
        raise InvalidRequest(f"register: expected a famnb.profiles.Profile, got {profile!r:.80}")
    if profile.name in NAMES:
        raise InvalidRequest(f"register: {profile.name!r} is a profile of famnb's own; choose another name")
    _registered[profile.name] = profile
    return profile


def is_known(name: str) -> bool:
    """Whether there is a profile of this name, of famnb's own or registered."""
    return name in NAMES or name in _registered


def find_profile(name: str) -> Profile:
    """Return the profile of a name. Raises InvalidRequest if there is none."""
    if not is_known(name):
        raise InvalidRequest(f"profile: no profile {name!r}; expected one of {', '.join((*NAMES, *_registered))}")
    if name in _registered:
        return _registered[name]
    # On first use: the requests of all vendors together take as long to define as everything else that a call needs.
    is_compatible = name in _COMPATIBLE
    module = importlib.import_module(f"famnb.profiles.{'compatible' if is_compatible else name}")
    profile: Profile = module.PROFILES[name] if is_compatible else module.PROFILE
    return profile


def find_endpoints(name: str) -> Endpoints:
    """Return the endpoints of a recorded profile; the document's for one that is not known here."""
    return find_profile(name).endpoints if is_known(name) else ENDPOINTS


def names_deployments(name: str) -> bool:
    """Whether the model of a request of this profile is a deployment of one's own."""
    return is_known(name) and find_profile(name).names_deployments


def check_profile(profile: object) -> Profile:
    """Return a profile that is given by name or as it is. Raises InvalidRequest for anything else."""
    if isinstance(profile, Profile):
        return profile
    if isinstance(profile, str):
        return find_profile(profile)
    raise InvalidRequest(f"profile: expected one of {', '.join(NAMES)}, or a Profile; got {profile!r:.80}")
