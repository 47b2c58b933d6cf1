"""The API of the document, strict; the profile of a client that names none."""

from famnb.endpoints import ENDPOINTS
from famnb.profiles.profile import Profile

PROFILE = Profile(
    name="fam",
    title="fam",
    endpoints=ENDPOINTS,
    url_variables=("FAM_BASE_URL",),
    key_variables=("FAM_API_KEY",),
)
