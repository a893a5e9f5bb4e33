import { ERRORS } from "./http/errors.ts";

import type { OpenApiDocument } from "./openapi.ts";
import type { JsonSchema } from "./openapi-examples.ts";
import type { OpenApiOperation, OpenApiParameter } from "./openapi-parts.ts";

/** HTML text, created only by `html`. */
interface Markup {
  readonly text: string;
}

type Value = string | number | Markup | readonly Value[];

/** A template tag for HTML. Escapes values, for elements and for attributes in quotes, unless they are markup. */
function html(parts: TemplateStringsArray, ...values: readonly Value[]): Markup {
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

/** Renders the page at `/docs` from the OpenAPI document. `base` is the start of the URLs in the examples. */
export function docsPage(document: OpenApiDocument, base: string): string {
  const sections = document.tags.map(({ name, description }) => ({
    name,
    description,
    operations: operationsOf(document, name),
  }));
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${document.info.title}: HTTP interface</title>
<link rel="stylesheet" href="/docs/style.css">
</head>
<body>
<header>
<h1>${document.info.title} <small>${document.info.version}</small></h1>
<p>The HTTP interface of this engine. It is also available as <a href="/openapi.json">OpenAPI 3.1</a>. The <a href="/">start page</a> uses it.</p>
</header>
<nav aria-label="Sections">${sections.map(({ name }) => html`<a href="#${anchor(name)}">${name}</a>`)}<a href="#errors">Errors</a></nav>
<main>
<section>
<h2 id="begin">Get started</h2>
<p>To play content, open this address in a player:</p>
${command(`vlc '${base}/ace/getstream?infohash=0123456789abcdef0123456789abcdef01234567'`)}
<p>Private methods need an access token. Only programs on the engine’s own computer can get it:</p>
${command(`curl '${base}/server/api?api_version=3&method=get_api_access_token'`)}
<p>Control methods answer <code>{"result": …, "error": null}</code>. Session URLs answer <code>{"response": …, "error": null}</code>.</p>
<ul class="legend">
<li>${badge("public", "Public")} needs no token</li>
<li>${badge("token", "Token")} needs <code>token=…</code></li>
<li>${badge("local", "This host")} only from the engine’s own computer</li>
<li>${badge("pages", "Any page")} web pages of other sites may call it</li>
<li>${badge("extra", "Extra")} an extension of the published interface</li>
</ul>
</section>
${sections.map(
  ({ name, description, operations }) => html`<section>
<h2 id="${anchor(name)}">${name}</h2>
<p>${description}.</p>
${operations.map(({ path, operation, upload }) => operationPart(base, path, operation, upload))}
</section>`,
)}
${errorsPart()}
</main>
</body>
</html>
`.text;
}

interface ListedOperation {
  readonly path: string;
  readonly operation: OpenApiOperation;
  /** The variant with a request body. */
  readonly upload: OpenApiOperation | undefined;
}

function operationsOf({ paths }: OpenApiDocument, tag: string): ListedOperation[] {
  return Object.entries(paths).flatMap(([path, { get, post }]) => {
    const operation = get ?? post;
    return operation?.tags.includes(tag) ? [{ path, operation, upload: post }] : [];
  });
}

function operationPart(
  base: string,
  path: string,
  operation: OpenApiOperation,
  upload: OpenApiOperation | undefined,
): Markup {
  const method = /^\/server\/api\/(\w+)$/.exec(path)?.[1];
  const { parameters } = operation;
  const files = Object.entries(upload?.requestBody?.content ?? {});
  return html`<article id="${operation.operationId}">
<h3><a href="#${operation.operationId}">${method ?? path}</a> ${badges(operation)}</h3>
<p>${operation.summary}.</p>
${parameters.length + files.length > 0 ? parameterTable(parameters, files) : ""}
<details><summary>Response and example</summary>
${responsePart(operation)}
${command(exampleCall(base, path, method, operation))}
</details>
</article>
`;
}

function badges(operation: OpenApiOperation): Markup[] {
  return [
    operation.security.length === 0 ? badge("public", "Public") : badge("token", "Token"),
    ...(operation["x-remote"] === false ? [badge("local", "This host")] : []),
    ...(operation["x-other-pages"] ? [badge("pages", "Any page")] : []),
    ...(operation["x-extra"] ? [badge("extra", "Extra")] : []),
  ];
}

function badge(kind: string, label: string): Markup {
  return html`<span class="badge ${kind}">${label}</span>`;
}

function parameterTable(
  parameters: readonly OpenApiParameter[],
  files: readonly (readonly [type: string, { readonly schema: JsonSchema }])[],
): Markup {
  return html`<div class="wide parameters"><table>
<thead><tr><th>Parameter</th><th>Type</th><th>Meaning</th></tr></thead>
<tbody>${parameters.map(
    ({ name, required, description, schema }) =>
      html`<tr><td><code>${name}</code>${required ? html` <b title="required">required</b>` : ""}</td><td>${typeName(schema)}</td><td>${description ?? ""}</td></tr>`,
  )}${files.map(([type, { schema }]) =>
    Object.keys((schema.properties ?? {}) as object).map(
      (name) =>
        html`<tr><td><code>${name}</code></td><td>file</td><td>In the body of a POST request: ${type}</td></tr>`,
    ),
  )}</tbody>
</table></div>`;
}

function typeName(schema: JsonSchema): string {
  if (Array.isArray(schema.enum)) return schema.enum.join(" | ");
  if (schema.type === "array") return `${typeName((schema.items ?? {}) as JsonSchema)}, repeatable`;
  return String(schema.type ?? "text");
}

function responsePart(operation: OpenApiOperation): Markup {
  const entries = Object.entries(operation.responses["200"]?.content ?? {});
  if (entries.length === 0) return html`<p>${operation.responses["200"]?.description ?? "A redirect"}.</p>`;
  return html`${entries.map(([type, { schema }]) =>
    type === "application/json"
      ? html`<pre class="shape">${shapeOf(successOf(schema), 0)}</pre>`
      : html`<p><code>${type}</code></p>`,
  )}`;
}

/** Returns the schema of a successful response. */
function successOf(schema: JsonSchema): JsonSchema {
  const [success] = (schema.oneOf ?? []) as readonly JsonSchema[];
  return success ?? schema;
}

/** Renders a schema as an outline of the JSON value. */
function shapeOf(schema: JsonSchema, depth: number): string {
  const pad = "  ".repeat(depth + 1);
  if (typeof schema.$ref === "string") return schema.$ref.split("/").at(-1)!;
  const choices = (schema.anyOf ?? schema.oneOf) as readonly JsonSchema[] | undefined;
  if (choices) return choices.map((each) => shapeOf(each, depth)).join(" | ");
  if (schema.type === "array") return `[ ${shapeOf((schema.items ?? {}) as JsonSchema, depth)}, … ]`;
  if (schema.properties) {
    const { required = [] } = schema as { required?: readonly string[] };
    const members = Object.entries(schema.properties as Record<string, JsonSchema>).map(
      ([name, member]) => `${pad}${name}${required.includes(name) ? "" : "?"}: ${shapeOf(member, depth + 1)}`,
    );
    return members.length === 0 ? "{}" : `{\n${members.join("\n")}\n${"  ".repeat(depth)}}`;
  }
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (Array.isArray(schema.enum)) return schema.enum.map((each) => JSON.stringify(each)).join(" | ");
  return [schema.type ?? "any"].flat().join(" | ");
}

function exampleCall(
  base: string,
  path: string,
  method: string | undefined,
  operation: OpenApiOperation,
): string {
  const query = [
    ...(method === undefined ? [] : ["api_version=3", `method=${method}`]),
    ...(operation.security.length > 0 ? ["token=$TOKEN"] : []),
    ...operation.parameters
      .filter((each) => each.in === "query" && each.required)
      .map(({ name, schema }) => `${name}=${sampleOf(schema)}`),
  ];
  const address =
    method === undefined ? path.replaceAll(/\{(\w+)\}/g, (_, name: string) => `<${name}>`) : "/server/api";
  const form =
    Object.keys(operation.requestBody?.content ?? {})[0] === "multipart/form-data" ? "-F file=@FILE " : "";
  return `curl ${form}"${base}${address}${query.length > 0 ? `?${query.join("&")}` : ""}"`;
}

function sampleOf(schema: JsonSchema): string {
  if (Array.isArray(schema.enum)) return String(schema.enum.at(-1));
  return schema.type === "integer" ? "1" : "…";
}

function command(line: string): Markup {
  return html`<pre class="command">${line}</pre>`;
}

function errorsPart(): Markup {
  return html`<section>
<h2 id="errors">Errors</h2>
<p>Control methods answer with status 200 and the text and number of the error. All other paths answer with the status and the text.</p>
<div class="wide"><table>
<thead><tr><th>Number</th><th>Text</th><th>Name</th><th>Status</th></tr></thead>
<tbody>${Object.entries(ERRORS)
    .sort(([, a], [, b]) => a.code - b.code)
    .map(
      ([name, { status, text, code }]) =>
        html`<tr><td>${code}</td><td>${text}</td><td><code>${name}</code></td><td>${status}</td></tr>`,
    )}</tbody>
</table></div>
</section>`;
}

function anchor(name: string): string {
  return name.toLowerCase().replaceAll(/[^a-z]+/g, "-");
}
