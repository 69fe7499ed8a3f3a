"""What the golden tables of plans have in common: a row for each case, one a line, so that a difference reads as changed decisions."""

import json


def planned_rows(plan, cases):
    """The table as `plan` sees it now, for (m, n, k, keywords) each. The estimate is left out: it is not a decision."""
    for m, n, k, options in cases:
        found = plan(m, n, k, **options)
        yield {"m": m, "n": n, "k": k, **options, **{key: found[key] for key in ("grid", "raster", "config")}}


def write(table, rows):
    """Writes the rows to the path `table`."""
    table.write_text("[\n" + ",\n".join(json.dumps(row) for row in rows) + "\n]\n")
