"""{{title}}: keeps short notes, and tells them again."""

from a2a_hub import Card, Context, Task, agent

CARD = Card("{{name}}", "Keeps short notes, and tells them again", "0.1.0").skill(
    "notes",
    "Notes",
    "Keeps a note, lists all of them, or forgets them once you agree",
    tags=["notes"],
    examples=["note buy milk", "list", "forget"],
)


@agent(CARD)
def run(ctx: Context, task: Task):
    word, _, text = task.text.strip().partition(" ")
    notes: list[str] = ctx.recall("notes", [])
    if word == "note" and text:
        ctx.remember("notes", [*notes, text])
        return f"kept; that makes {len(notes) + 1}"
    if word == "list":
        with ctx.stream("notes", name="Notes") as stream:
            for number, note in enumerate(notes, 1):
                ctx.progress(100 * number / len(notes))
                stream.write(f"{number}. {note}\n")
        return f"{len(notes)} notes"
    if word == "forget":
        if ctx.ask(f"Forget {len(notes)} notes?").text.strip().lower() != "yes":
            return "kept them all"
        ctx.forget("notes")
        return "forgotten"
    return ctx.reject("Say `note TEXT`, `list` or `forget`.")
