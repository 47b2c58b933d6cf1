"""Profiles: the APIs of vendors as values, each in a file of its own.

    famnb.connect("openai")                                # with the key of OPENAI_API_KEY
    famnb.Client(profile="open", base_url="http://gpu:8080")     # any server that speaks one of the dialects
    famnb.profiles.find_profile("vllm").endpoints["chat"].request.model_fields
    help("famnb.profiles.vllm")                            # what it sends, and the vendor's page about it

A profile has the vendor's endpoints, each with its path, request model and suggested models, the variables that may
hold key and address, the header of the key, and headers that every request has. `client.compose(endpoint, prompt, …)`
makes a request of it, `famnb.Composer(client)` is a form of its fields, `famnb.calls()` has its name in the column
`profile`, and a variant of an experiment or a board may have a `client` of its own. A field that a profile does not
have goes into `extra_body={…}`. A price may be of one service: `famnb.prices.set(…, service="openrouter")`.

To add a profile: its file, whose `PROFILE` is the value, and its name here. Its requests are built of the tables of
fields in `request/vendor_fields.py`: those that the vendor takes, and rows of its own. Nothing else matches on a
profile's name.
"""

from __future__ import annotations

import importlib
from functools import cache

from famnb.endpoints import ENDPOINTS, Endpoints
from famnb.errors import InvalidRequest
from famnb.profiles.profile import Profile

DEFAULT = "fam"
"""The profile of a client that names none."""
NAMES = ("fam", "openai", "anthropic", "openrouter", "gemini", "azure", "ollama", "vllm", "local", "open")
"""The names that `famnb.Client(profile=…)` takes."""
VENDOR_NAMES = tuple(name for name in NAMES if name not in (DEFAULT, "local"))
"""Those of services that are not famnb's own."""


@cache
def find_profile(name: str) -> Profile:
    """Return the profile of a name. Raises InvalidRequest if there is none."""
    if name not in NAMES:
        raise InvalidRequest(f"profile: no profile {name!r}; expected one of {', '.join(NAMES)}")
    # On first use: the requests of all vendors together take as long to define as everything else that a call needs.
    profile: Profile = importlib.import_module(f"famnb.profiles.{name}").PROFILE
    return profile


def find_endpoints(name: str) -> Endpoints:
    """Return the endpoints of a recorded profile; the document's for one that is not known here."""
    return find_profile(name).endpoints if name in NAMES else ENDPOINTS


def names_deployments(name: str) -> bool:
    """Whether the model of a request of this profile is a deployment of one's own."""
    return name in NAMES and find_profile(name).names_deployments


def check_profile(profile: object) -> Profile:
    """Return a profile that is given by name or as it is. Raises InvalidRequest for anything else."""
    if isinstance(profile, Profile):
        return profile
    if isinstance(profile, str):
        return find_profile(profile)
    raise InvalidRequest(f"profile: expected one of {', '.join(NAMES)}, or a Profile; got {profile!r:.80}")
