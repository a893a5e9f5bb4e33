import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { CONTROL_SECTIONS } from "../../routes/control/control.ts";
import { ERRORS } from "../../routes/http/errors.ts";
import { playbackParams } from "../../routes/http/params.ts";
import { type OpenApiDocument, openApiDocument } from "../../routes/openapi.ts";
import type { OpenApiOperation } from "../../routes/openapi-parts.ts";
import { VERSION } from "../../src/settings/version.ts";
import { fakeApp } from "./client.ts";

const METHODS = CONTROL_SECTIONS.flatMap(({ methods }) => methods);

const document = openApiDocument(VERSION);

/** Returns every operation with its path. */
function operations({ paths }: OpenApiDocument): (readonly [path: string, operation: OpenApiOperation])[] {
  return Object.entries(paths).flatMap(([path, { get, post }]) =>
    [get, post].flatMap((operation) => (operation ? [[path, operation] as const] : [])),
  );
}

test("openApiDocument: equals docs/openapi.json; if not, run `npm run openapi`", () => {
  const stored = JSON.parse(readFileSync(new URL("../../docs/openapi.json", import.meta.url), "utf8"));
  assert.deepEqual(stored, JSON.parse(JSON.stringify(document)));
});

test("openApiDocument: contains every control method, with access and required parameters", () => {
  for (const method of METHODS) {
    const { get, post } = document.paths[`/server/api/${method.name}`] ?? {};
    const operation = get ?? post;
    assert.ok(operation, method.name);
    assert.equal(operation.security.length === 0, method.isPublic, method.name);
    assert.equal(operation["x-remote"], method.isRemote, method.name);
    assert.equal(operation["x-public"], method.isPublic, method.name);
  }
  const required = (name: string) =>
    document.paths[`/server/api/${name}`]?.get?.parameters
      .filter((parameter) => parameter.required)
      .map((parameter) => parameter.name);
  assert.deepEqual(required("analyze_content"), ["query"]);
  assert.deepEqual(required("open_in_player"), []);
  assert.deepEqual(required("get_media_files"), []);
});

test("openApiDocument: contains every parameter of the playback endpoints", () => {
  for (const path of ["/ace/getstream", "/ace/manifest.m3u8"]) {
    const names = document.paths[path]?.get?.parameters.map(({ name }) => name);
    const expected = Object.keys(playbackParams.shape).filter((name) => name !== "manifest_url");
    assert.deepEqual(names, expected);
  }
  const [first] = document.paths["/hls/manifest.m3u8"]?.get?.parameters ?? [];
  assert.equal(first?.name, "manifest_url");
});

test("openApiDocument: is consistent with OpenAPI 3.1", () => {
  const all = operations(document);
  const ids = all.map(([, { operationId }]) => operationId);
  assert.equal(new Set(ids).size, ids.length);
  const tags = new Set(document.tags.map(({ name }) => name));
  for (const [path, operation] of all) {
    const inPath = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name!);
    const declared = operation.parameters.filter((each) => each.in === "path");
    assert.deepEqual(
      declared.map(({ name }) => name),
      inPath,
    );
    assert.ok(declared.every(({ required }) => required));
    const names = operation.parameters.map((each) => `${each.in} ${each.name}`);
    assert.equal(new Set(names).size, names.length, path);
    assert.ok(operation.tags.every((tag) => tags.has(tag)));
    assert.ok("200" in operation.responses || "302" in operation.responses, path);
    // Clients learn from the document that a request may be refused.
    for (const status of ["403", "421"]) assert.ok(status in operation.responses, `${path} ${status}`);
    assert.equal(operation["x-public"], operation.security.length === 0);
    assert.equal(typeof operation["x-remote"], "boolean");
    const { example } = operation.responses["200"]?.content?.["application/json"] ?? {};
    if (path.startsWith("/server/api/") && !/_(?:image|icon|backup|pass)$/.test(path))
      assert.ok(example !== undefined, path);
  }
  const text = JSON.stringify(document);
  for (const [, kind, name] of text.matchAll(/"#\/components\/(schemas|responses)\/(\w+)"/g))
    assert.ok(document.components[kind as "schemas" | "responses"][name!], name!);
  assert.ok(Object.keys(document.paths).every((path) => !path.includes("#")));
  assert.doesNotMatch(text, /\$defs|"\$schema"/);
});

test("openApiDocument: an answer is one object, in which generated clients find the value and the error", () => {
  for (const [path, { responses }] of operations(document)) {
    const { schema } = responses["200"]?.content?.["application/json"] ?? {};
    if (!/^\/(server\/api|ace\/(stat|cmd|event)|search|webui)\b/.test(path) || schema === undefined) continue;
    const {
      type,
      required = [],
      properties = {},
    } = schema as {
      type?: string;
      required?: string[];
      properties?: Record<string, { anyOf?: { type?: string }[] }>;
    };
    assert.equal(type, "object", path);
    assert.equal(required.length, 2, path);
    for (const member of required)
      assert.deepEqual(
        properties[member]?.anyOf?.map((each) => each.type === "null"),
        [false, true],
        path,
      );
  }
});

test("/openapi.json: returns the document with this version", async () => {
  const response = await fakeApp().call("/openapi.json");
  assert.equal(response.headers.get("content-type"), "application/json");
  const served = (await response.json()) as OpenApiDocument;
  assert.equal(served.info.version, "1.2.3");
  assert.deepEqual(served.paths, JSON.parse(JSON.stringify(document.paths)));
});

test("/docs: lists every operation and error, without scripts and other servers", async () => {
  const { call } = fakeApp();
  for (const path of ["/docs", "/docs/"]) {
    const response = await call(path);
    assert.equal(response.status, 200);
    assert.equal(response.headers.get("content-type"), "text/html; charset=utf-8");
    const policy = response.headers.get("content-security-policy") ?? "";
    assert.match(policy, /^default-src 'none'; style-src 'self';/);
    assert.doesNotMatch(policy, /unsafe|\*|http:|script-src/);
    const page = await response.text();
    for (const [, { operationId, summary }] of operations(document)) {
      if (/_upload$|_of_transport_file$/.test(operationId)) continue;
      assert.ok(page.includes(`id="${operationId}"`), operationId);
      assert.ok(page.includes(summary.replaceAll(/[&<>"']/g, "").slice(0, 10)), summary);
    }
    for (const name of Object.keys(ERRORS)) assert.ok(page.includes(`<code>${name}</code>`), name);
    assert.doesNotMatch(page, /<script|<style|style="|onclick|javascript:|<img/i);
    for (const [, target] of page.matchAll(/(?:href|src)="([^"]*)"/g)) assert.match(target!, /^[/#](?!\/)/);
  }
  const style = await call("/docs/style.css");
  assert.equal(style.headers.get("content-type"), "text/css; charset=utf-8");
  assert.doesNotMatch(await style.text(), /url\(|@import/);
});

test("/docs: examples contain the requested host, escaped", async () => {
  const { call } = fakeApp();
  const page = await (await call("/docs", { host: "localhost:6878" })).text();
  assert.ok(
    page.includes("curl &quot;http://localhost:6878/server/api?api_version=3&amp;method=get_status&quot;"),
  );
});
