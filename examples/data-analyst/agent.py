"""Agent that reads a table, as CSV or JSON, and reports a summary of each column or figures by
group.
"""

import csv
import io
import json
import re
import statistics
from typing import Any

from a2a_hub import Card, Context, Denied, Invalid, Part, Task, agent

Row = dict[str, Any]

FIGURES = {"count": len, "sum": sum, "mean": statistics.fmean, "median": statistics.median, "min": min, "max": max}

QUESTION = re.compile(r"\b(?P<figure>count|sum|mean|average|median|min|max)\s+(?:of\s+)?(?P<value>[\w-]+)(?:\s+(?:by|per)\s+(?P<group>[\w-]+))?", re.I)

CARD = (
    Card("data-analyst", "Says what is in a table: summaries of its columns, and figures by group", "0.1.0", input_modes=["text/plain", "text/csv", "application/json"])
    .skill("summary", "Summary", "Describes each column of a table in CSV or JSON", tags=["data", "csv"], examples=["summary"])
    .skill("figures", "Figures", "Count, sum, mean, median, min or max of a column, by another one", tags=["data"], examples=["mean of price by city"])
)


@agent(CARD)
def run(ctx: Context, task: Task):
    question, rows = read(task)
    key = f"table/{task.context_id}"
    if rows:
        # The next question of this conversation then needs no table.
        keep(ctx, key, rows)
    else:
        rows = kept(ctx, key)
    if not rows:
        return ctx.reject("Send a table with the question: a file of CSV or JSON, or its text below the question.")
    ctx.say(f"{len(rows)} rows, {len(rows[0])} columns")
    if match := QUESTION.search(question):
        figure = {"average": "mean"}.get(match["figure"].lower(), match["figure"].lower())
        value = column(ctx, rows, match["value"])
        group = column(ctx, rows, match["group"]) if match["group"] else None
        title, head, body = f"{figure} of {value}", [group or "rows", figure], figures(rows, figure, value, group)
    else:
        title, head, body = "summary", ["column", "kind", "values", "missing", "what"], summary(rows)
    markdown = table(head, body)
    records = [dict(zip(head, line)) for line in body]
    ctx.artifact("result", [Part(text=markdown, media_type="text/markdown"), Part(data=records)], name=title)
    return markdown


def keep(ctx: Context, key: str, rows: list[Row]) -> None:
    """Stores the table if it is small, replacing the previous one, if memory is granted."""
    if len(json.dumps(rows)) > 100_000:
        return
    try:
        for old in ctx.remembered("table/"):
            ctx.forget(old)
        ctx.remember(key, rows)
    except Denied:
        ctx.log("no memory is granted: each question needs its table", "debug")


def kept(ctx: Context, key: str) -> list[Row]:
    try:
        return ctx.recall(key, [])
    except Denied:
        return []


def read(task: Task) -> tuple[str, list[Row]]:
    """Reads the question and the attached table."""
    question = ""
    for part in task.message.parts:
        if part.data is not None:
            return question, rows_of(part.data)
        text = part.raw.decode("utf-8-sig", "replace") if part.raw is not None else part.text
        if text is None:
            continue
        if part.raw is not None or part.media_type in ("text/csv", "application/json"):
            return question, parse(text)
        first, _, rest = text.partition("\n")
        question = question or first
        if rest.strip():
            return question, parse(rest)
    return question, []


def parse(text: str) -> list[Row]:
    if text.lstrip().startswith(("[", "{")):
        try:
            return rows_of(json.loads(text))
        except (ValueError, RecursionError) as wrong:
            raise Invalid(f"the table begins as JSON and is none: {wrong}") from None
    try:
        dialect = csv.Sniffer().sniff(text[:10_000], delimiters=",;\t|")
    except csv.Error:
        dialect = csv.excel
    return rows_of(list(csv.DictReader(io.StringIO(text.strip()), dialect=dialect, restkey="more")))


def rows_of(value: Any) -> list[Row]:
    """Converts a list of objects, or an object of lists, to rows."""
    if isinstance(value, dict) and value and all(isinstance(each, list) for each in value.values()):
        value = [dict(zip(value, line)) for line in zip(*value.values())]
    if not isinstance(value, list) or not all(isinstance(row, dict) for row in value):
        raise Invalid("a table in JSON is a list of objects, or an object of lists: `[{\"city\": \"Bern\"}]`")
    names = list(dict.fromkeys(str(name) for row in value for name in row))
    return [{name: typed(row.get(name)) for name in names} for row in value]


def typed(cell: Any) -> Any:
    """Converts a cell to a number if possible, and to None if empty."""
    if not isinstance(cell, str):
        return cell if isinstance(cell, (int, float)) or cell is None else str(cell)
    text = cell.strip()
    if re.fullmatch(r"[-+]?\d{1,15}", text):
        return int(text)
    if re.fullmatch(r"[-+]?\d*[.]\d+(e[-+]?\d+)?", text, re.I):
        return float(text)
    return text or None


def column(ctx: Context, rows: list[Row], name: str) -> str:
    """Finds the column with that name; asks the client if it does not exist."""
    names = {each.lower(): each for each in rows[0]}
    asked = name
    for _ in range(3):
        if found := names.get(asked.lower()):
            return found
        asked = ctx.ask(f"There is no column `{asked}`. Which one is meant: {', '.join(rows[0])}?").text.strip()
    raise Invalid(f"no column is called `{asked}`; there are {', '.join(rows[0])}")


def numbers(values: list[Any]) -> list[float]:
    return [value for value in values if isinstance(value, (int, float)) and not isinstance(value, bool)]


def figures(rows: list[Row], figure: str, value: str, group: str | None) -> list[list[Any]]:
    groups: dict[Any, list[Any]] = {}
    for row in rows:
        if row[value] is not None:
            groups.setdefault(row[group] if group else "all", []).append(row[value])
    body = []
    for name, values in groups.items():
        counted = values if figure == "count" else numbers(values)
        if counted:
            body.append([name, rounded(FIGURES[figure](counted))])
    if not body:
        raise Invalid(f"`{value}` holds no numbers, so it has no {figure}; `count of {value}` works with anything")
    return sorted(body, key=lambda line: -line[1])


def summary(rows: list[Row]) -> list[list[Any]]:
    body = []
    for name in rows[0]:
        values = [row[name] for row in rows if row[name] is not None]
        found = numbers(values)
        if values and len(found) == len(values):
            what = f"{rounded(min(found))} to {rounded(max(found))}, mean {rounded(statistics.fmean(found))}"
            kind = "number"
        else:
            kind, what = "text", ", ".join(f"{value} ({count})" for value, count in most_common(values))
        body.append([name, kind, len(set(map(str, values))), len(rows) - len(values), what])
    return body


def most_common(values: list[Any]) -> list[tuple[Any, int]]:
    counts: dict[Any, int] = {}
    for value in values:
        counts[value] = counts.get(value, 0) + 1
    return sorted(counts.items(), key=lambda each: -each[1])[:3]


def rounded(value: float) -> float:
    return round(value, 4) if isinstance(value, float) else value


def table(head: list[Any], body: list[list[Any]]) -> str:
    def line(cells: list[Any]) -> str:
        return "| " + " | ".join(str(cell).replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"

    return "\n".join([line(head), line(["---"] * len(head)), *map(line, body)])
