/** Text that is HTML already: made by `html` alone. */
export interface Markup {
  readonly text: string;
}

type Value = string | number | Markup | readonly Value[];

/** A template of HTML: what is put in is escaped, for elements and for attributes in quotes, unless it is markup. */
export function html(parts: TemplateStringsArray, ...values: readonly Value[]): Markup {
  return { text: parts.map((part, i) => part + (i < values.length ? textOf(values[i]!) : "")).join("") };
}

function textOf(value: Value): string {
  if (typeof value === "string") return escaped(value);
  if (typeof value === "number") return String(value);
  return "text" in value ? value.text : value.map(textOf).join("");
}

const ESCAPES: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};

function escaped(text: string): string {
  return text.replaceAll(/[&<>"']/g, (character) => ESCAPES[character]!);
}
