"""JSON schema and reference page of the region file, from its models."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from components.plan.vm_sizes import VM_SIZES
from components.spec.region import Region
from components.spec.types import FORMS

Schema = dict[str, Any]
BOUNDS = {"minimum": "at least", "maximum": "at most", "exclusiveMinimum": "more than", "exclusiveMaximum": "less than"}


def schema() -> Schema:
    """Return the JSON schema (draft 2020-12) of a region file."""
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **Region.model_json_schema()}


def schema_text() -> str:
    """Return the text of the schema file."""
    return json.dumps(schema(), indent=2, ensure_ascii=False) + "\n"


def reference() -> str:
    """Return the reference page: one table per model, in the order of references from the region."""
    whole = schema()
    models = whole["$defs"]
    lines = [
        "# The region file",
        "",
        "One file per region, `stacks/regions/<region>.yaml`. `gpufleet schema` writes this page from the models in `components/spec`.",
        "",
        *_table("Region", whole, models),
    ]
    for name in _reached(whole, models):
        if "properties" in models[name]:
            lines += _table(name, models[name], models)
        elif "enum" in models[name]:
            lines += [
                f"## {name}",
                "",
                f"{models[name].get('description', '')}",
                "",
                f"One of: {', '.join(f'`{value}`' for value in models[name]['enum'])}.",
                "",
            ]
    return "\n".join([*lines, *_vm_sizes()]).rstrip() + "\n"


def _vm_sizes() -> list[str]:
    """Return the table of VM sizes."""
    rows = []
    for size in VM_SIZES.values():
        gpus = f"{size.gpus} x {size.gpu}" if size.gpus else ""
        infiniband = f"{size.infiniband_ports} x {size.infiniband_gbps}" if size.infiniband_ports else ""
        cells = (f"`{size.name}`", f"`{size.family}`", size.vcpus, f"{size.memory_gib:,}", gpus, infiniband, f"{size.local_nvme_gib:,}")
        rows.append(f"| {' | '.join(map(str, cells))} |")
    head = "| size | family | vCPUs | memory, GiB | GPUs | InfiniBand, Gbit/s | local NVMe, GiB |"
    introduction = "Sizes that a file may name. A new one is a row of `components/plan/vm_sizes.py`, with its source."
    return ["## VM sizes", "", introduction, "", head, "|---|---|---|---|---|---|---|", *rows, ""]


def _reached(schema: Schema, models: dict[str, Schema]) -> list[str]:
    """Return the names of the models that a schema refers to, breadth first."""
    order: list[str] = []
    waiting = list(_references(schema.get("properties", {})))
    while waiting:
        name = waiting.pop(0)
        if name not in order:
            order.append(name)
            waiting += _references(models[name].get("properties", {}))
    return order


def _references(node: object) -> Iterator[str]:
    """Yield the names that a part of a schema refers to."""
    if isinstance(node, dict):
        if isinstance(node.get("$ref"), str):
            yield node["$ref"].rpartition("/")[2]
        for value in node.values():
            yield from _references(value)
    elif isinstance(node, list):
        for value in node:
            yield from _references(value)


def _table(name: str, model: Schema, models: dict[str, Schema]) -> list[str]:
    """Return one model as a heading and a table; a field without description gets its model's."""
    lines = [f"## {name}", "", str(model.get("description", "")), "", "| key | type | default | meaning |", "|---|---|---|---|"]
    required = set(model.get("required", ()))
    for key, field in model.get("properties", {}).items():
        default = "required" if key in required else f"`{json.dumps(field.get('default'))}`" if "default" in field else "empty"
        own = field.get("description") or models.get(str(field.get("$ref", "")).rpartition("/")[2], {}).get("description", "")
        meaning = str(own).replace("|", "\\|").replace("\n", " ")
        lines.append(f"| `{key}` | {_type(field)} | {default} | {meaning} |")
    return [*lines, ""]


def _type(field: Schema) -> str:
    """Return a field's type in words, with its bounds."""
    if "$ref" in field:
        name = field["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    for several in ("anyOf", "oneOf"):
        if several in field:
            return " or ".join(_type(arm) for arm in field[several] if arm.get("type") != "null")
    if field.get("type") == "array":
        return f"list of {_type(field.get('items', {}))}"
    if "pattern" in field:
        return FORMS.get(field["pattern"], "string")
    if "patternProperties" in field:
        ((key, value),) = field["patternProperties"].items()
        return f"mapping of {FORMS.get(key, 'string')} to {_type(value)}"
    if field.get("format") == "date":
        return 'a date in quotes: "2026-12-19"'
    if field.get("type") == "object":
        return f"mapping to {_type(field.get('additionalProperties', {}))}"
    if "const" in field:
        return f"`{field['const']}`"
    bounds = ", ".join(f"{word} {field[key]:,}" for key, word in BOUNDS.items() if key in field)
    return f"{field.get('type', 'any')}{f' ({bounds})' if bounds else ''}"
