"""Tables of fields, and the requests that are built of them: those of the local service, and those of each vendor.

    CHAT = {**document_fields(ChatRequest), "seed": Row(int, "For answers that repeat.", "Sampling")}
    MyChatRequest = build_request("MyChatRequest", "Chat completions at mine.", CHAT, like=ChatRequest, module=__name__)

A table is a plain dict: a later row replaces an earlier one of the same name, and `pick` takes those that a vendor has.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Annotated, Any, TypeAlias, get_args, get_origin

from pydantic import Field, create_model
from pydantic.fields import FieldInfo

from famnb.request.base import Heading, Request, RequestTraits
from famnb.request.neutral import FieldPath


@dataclasses.dataclass(frozen=True, slots=True)
class Row:
    """One field of a request."""

    type: Any
    """The type of its value, limits included."""
    text: str | None = None
    """What it means."""
    heading: Heading | None = None
    """Where it stands in the form; None for one with a place of its own, and for one that comes under `More`."""
    default: Any = None
    """Its default; None if it is unset, `...` if it must be given."""
    implied: Mapping[FieldPath, tuple[FieldPath, str]] = dataclasses.field(default_factory=dict)
    """For fields in it without effect on their own: the field that must be set with it, and its value."""


Table: TypeAlias = Mapping[str, Row]


def field_type(field: FieldInfo) -> Any:
    """Return the type of a model's field, limits included."""
    annotation: Any = field.annotation
    for constraint in field.metadata:
        annotation = Annotated[annotation, constraint]
    return annotation


def document_fields(model: type[Request]) -> Table:
    """Return the fields of a request of the document as a table."""
    traits = model.traits
    return {
        name: Row(
            field_type(field),
            field.description,
            traits.groups.get(name),
            ... if field.is_required() else field.default,
            {path: value for path, value in traits.implied.items() if path[0] == name},
        )
        for name, field in model.model_fields.items()
    }


def pick(table: Table, names: str) -> Table:
    """Return the rows of these names, which are words between spaces."""
    return {name: table[name] for name in names.split()}


def build_request(
    name: str,
    summary: str,
    table: Table,
    *,
    like: type[Request],
    traits: RequestTraits | None = None,
    module: str,
    cap: str = "",
) -> type[Request]:
    """Return a request with the fields of a table, for the endpoint of a request of the document, with the same base.

    `traits` and `cap`, the field that limits generated tokens, are given where they are others; the headings and
    implied fields are those of the table. To be pickled, a request has to be a variable of this `name` in `module`.
    """
    fields: dict[str, Any] = {}
    for field, row in table.items():
        bare_type = get_args(row.type)[0] if get_origin(row.type) is Annotated else row.type
        is_nullable = row.default is not None or type(None) in get_args(bare_type)
        fields[field] = (row.type if is_nullable else row.type | None, Field(row.default, description=row.text))
    base: type[Request] = like.__mro__[1]
    # Each row has its text; to look for docstrings in the source of this function takes longer than all the rest.
    options = {"use_attribute_docstrings": False}
    model: type[Request] = create_model(
        name, __base__=base, __doc__=summary, __module__=module, __cls_kwargs__=options, **fields
    )
    model.endpoint = like.endpoint
    model.cap = cap or like.cap
    model.traits = dataclasses.replace(
        traits or like.traits,
        groups={field: row.heading for field, row in table.items() if row.heading is not None},
        implied={path: value for row in table.values() for path, value in row.implied.items()},
    )
    return model
