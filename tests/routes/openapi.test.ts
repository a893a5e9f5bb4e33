import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { CONTROL_METHODS } from "../../routes/control/control.ts";
import { ERRORS } from "../../routes/errors.ts";
import { type OpenApiDocument, openApiDocument } from "../../routes/openapi.ts";
import type { OpenApiOperation } from "../../routes/openapi-parts.ts";
import { playbackParams } from "../../routes/params.ts";
import { VERSION } from "../../src/version.ts";
import { fakeApp } from "./client.ts";

const document = openApiDocument(VERSION);

/** Every operation, with its path. */
function operations({ paths }: OpenApiDocument): (readonly [path: string, operation: OpenApiOperation])[] {
  return Object.entries(paths).flatMap(([path, { get, post }]) =>
    [get, post].flatMap((operation) => (operation ? [[path, operation] as const] : [])),
  );
}

test("openApiDocument: docs/openapi.json is the same; else run `npm run openapi`", () => {
  const kept = JSON.parse(readFileSync(new URL("../../docs/openapi.json", import.meta.url), "utf8"));
  assert.deepEqual(kept, JSON.parse(JSON.stringify(document)));
});

test("openApiDocument: has every control method, with its access and its required parameters", () => {
  for (const method of CONTROL_METHODS) {
    const { get, post } = document.paths[`/server/api#${method.name}`] ?? {};
    const operation = get ?? post;
    assert.ok(operation, method.name);
    assert.equal(operation.security.length === 0, method.isPublic, method.name);
    assert.equal(operation["x-remote"], method.isRemote, method.name);
    const selector = operation.parameters.find(({ name }) => name === "method");
    assert.deepEqual(selector?.schema.enum, [method.name]);
  }
  const required = (name: string) =>
    document.paths[`/server/api#${name}`]?.get?.parameters
      .filter((parameter) => parameter.required)
      .map((parameter) => parameter.name);
  assert.deepEqual(required("analyze_content"), ["method", "query"]);
  assert.deepEqual(required("open_in_player"), ["method", "player_id"]);
  assert.deepEqual(required("get_media_files"), ["method"]);
});

test("openApiDocument: has every parameter of the playback endpoints", () => {
  for (const path of ["/ace/getstream", "/ace/manifest.m3u8"]) {
    const names = document.paths[path]?.get?.parameters.map(({ name }) => name);
    const expected = Object.keys(playbackParams.shape).filter((name) => name !== "manifest_url");
    assert.deepEqual(names, expected);
  }
  const [first] = document.paths["/hls/manifest.m3u8"]?.get?.parameters ?? [];
  assert.equal(first?.name, "manifest_url");
});

test("openApiDocument: holds together as OpenAPI 3.1 wants it", () => {
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
    assert.ok(Object.keys(operation.responses).length > 0);
  }
  const text = JSON.stringify(document);
  for (const [, name] of text.matchAll(/"#\/components\/schemas\/(\w+)"/g))
    assert.ok(document.components.schemas[name!], name!);
  assert.doesNotMatch(text, /\$defs|"\$schema"/);
});

test("/openapi.json: the document of this version", async () => {
  const response = await fakeApp().call("/openapi.json");
  assert.equal(response.headers.get("content-type"), "application/json");
  const served = (await response.json()) as OpenApiDocument;
  assert.equal(served.info.version, "1.2.3");
  assert.deepEqual(served.paths, JSON.parse(JSON.stringify(document.paths)));
});

test("/docs: every operation and every error, without a script and without anything from elsewhere", async () => {
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

test("/docs: how it was addressed is written into the examples, escaped", async () => {
  const { call } = fakeApp();
  const page = await (await call("/docs", { host: "localhost:6878" })).text();
  assert.ok(
    page.includes("curl &quot;http://localhost:6878/server/api?api_version=3&amp;method=get_status&quot;"),
  );
});
