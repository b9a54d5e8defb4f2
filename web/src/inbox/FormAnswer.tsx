// Form for a question that asks for several values, by its JSON schema.

import { useState } from "preact/hooks";
import { Prose } from "../parts/Text.tsx";
import { visibleText } from "../text/visible.ts";
import type { Json, JsonObject } from "../hub/types.ts";

interface Field {
  name: string;
  title: string;
  description: string;
  type: string;
  options: { value: string; title: string }[];
  multiple: boolean;
  initial: Json | undefined;
  required: boolean;
}

function asObject(value: Json | undefined): JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? value : {};
}

function texts(value: Json | undefined): string[] {
  return Array.isArray(value) ? value.filter((it): it is string => typeof it === "string") : [];
}

function optionsOf(schema: JsonObject): { value: string; title: string }[] {
  const named = schema.oneOf ?? schema.anyOf;
  if (Array.isArray(named)) {
    return named.map(asObject).flatMap((it) =>
      typeof it.const === "string" ? [{ value: it.const, title: typeof it.title === "string" ? it.title : it.const }] : [],
    );
  }
  const names = texts(schema.enumNames);
  return texts(schema.enum).map((value, at) => ({ value, title: names[at] ?? value }));
}

/** Fields of a form, 20 at most. */
export function fieldsOf(form: JsonObject): Field[] {
  const required = new Set(texts(form.required));
  return Object.entries(asObject(form.properties))
    .slice(0, 20)
    .map(([name, value]) => {
      const schema = asObject(value);
      const multiple = schema.type === "array";
      return {
        name,
        title: typeof schema.title === "string" ? schema.title : name,
        description: typeof schema.description === "string" ? schema.description : "",
        type: typeof schema.type === "string" ? schema.type : "string",
        options: optionsOf(multiple ? asObject(schema.items) : schema),
        multiple,
        initial: schema.default,
        required: required.has(name),
      };
    });
}

interface Props {
  form: JsonObject;
  busy: boolean;
  onAnswer: (text: string) => void;
}

export function FormAnswer({ form, busy, onAnswer }: Props) {
  const fields = fieldsOf(form);
  const [values, setValues] = useState<JsonObject>(() =>
    Object.fromEntries(fields.filter((it) => it.initial !== undefined).map((it) => [it.name, it.initial])),
  );
  const set = (name: string, value: Json | undefined) => setValues((old) => ({ ...old, [name]: value }));
  const submit = (event: Event) => {
    event.preventDefault();
    // A box that nobody touched is a no.
    const untouched = fields.filter((it) => it.type === "boolean" && it.required && values[it.name] === undefined);
    onAnswer(JSON.stringify({ ...values, ...Object.fromEntries(untouched.map((it) => [it.name, false])) }));
  };
  return (
    <form class="form" onSubmit={submit}>
      {fields.map((field) => (
        <FormField key={field.name} field={field} value={values[field.name]} set={(value) => set(field.name, value)} />
      ))}
      <div class="buttons">
        <button type="submit" class="primary" disabled={busy}>
          Answer
        </button>
      </div>
    </form>
  );
}

function FormField({ field, value, set }: { field: Field; value: Json | undefined; set: (value: Json | undefined) => void }) {
  const id = `form-${field.name}`;
  const descriptionId = field.description === "" ? undefined : `${id}-text`;
  const label = (
    <>
      <Prose text={field.title} />
      {field.required && <span class="muted"> (required)</span>}
    </>
  );
  const description = field.description !== "" && (
    <p class="muted" id={`${id}-text`}>
      <Prose text={field.description} />
    </p>
  );
  if (field.type === "boolean") {
    return (
      <div class="field">
        <label class="check">
          <input type="checkbox" checked={value === true} onChange={(event) => set(event.currentTarget.checked)} aria-describedby={descriptionId} />
          <span>{label}</span>
        </label>
        {description}
      </div>
    );
  }
  if (field.multiple && field.options.length > 0) {
    const chosen = texts(value);
    return (
      <fieldset class="field field-group" aria-describedby={descriptionId}>
        <legend>{label}</legend>
        {description}
        {field.options.map((option) => (
          <label class="check" key={option.value}>
            <input
              type="checkbox"
              checked={chosen.includes(option.value)}
              onChange={(event) => {
                const next = event.currentTarget.checked ? [...chosen, option.value] : chosen.filter((it) => it !== option.value);
                set(next);
              }}
            />
            <span>
              <Prose text={option.title} />
            </span>
          </label>
        ))}
      </fieldset>
    );
  }
  const isNumber = field.type === "number" || field.type === "integer";
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {description}
      {field.options.length > 0 ? (
        <select
          id={id}
          required={field.required}
          onChange={(event) => set(event.currentTarget.value || undefined)}
          aria-describedby={descriptionId}
        >
          <option value="">Choose</option>
          {field.options.map((option) => (
            <option key={option.value} value={option.value} selected={value === option.value}>
              {visibleText(option.title)}
            </option>
          ))}
        </select>
      ) : (
        <input
          id={id}
          type="text"
          inputMode={isNumber ? "decimal" : "text"}
          pattern={field.type === "integer" ? "-?[0-9]+" : isNumber ? "-?[0-9.]+(e-?[0-9]+)?" : undefined}
          required={field.required}
          value={typeof value === "string" || typeof value === "number" ? String(value) : ""}
          onInput={(event) => {
            const text = event.currentTarget.value;
            set(text === "" ? undefined : isNumber ? Number(text) : text);
          }}
          aria-describedby={descriptionId}
        />
      )}
    </div>
  );
}
