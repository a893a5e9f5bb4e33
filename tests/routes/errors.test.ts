import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { describeError, ERRORS } from "../../routes/http/errors.ts";
import { SluiceError, type SluiceErrorCode } from "../../src/base/errors.ts";

test("ERRORS: docs/errors.md shows the same table", () => {
  const page = readFileSync(new URL("../../docs/errors.md", import.meta.url), "utf8");
  const rows = [...page.matchAll(/^\| `(\w+)` \| (\d+) \| ([^|]+) \| (\d+) \|/gm)].map(
    ([, name, status, text, code]) => [
      name,
      { status: Number(status), text: text!.trim(), code: Number(code) },
    ],
  );
  assert.deepEqual(Object.fromEntries(rows), ERRORS);
});

test("ERRORS: codes are unique, except 0, which all texts that the interface specifies share", () => {
  const codes = Object.values(ERRORS)
    .map(({ code }) => code)
    .filter((code) => code !== 0);
  assert.equal(new Set(codes).size, codes.length);
  assert.ok(codes.every((code) => code >= 100 && code <= 499));
});

test("describeError: appends details to the text unless the text is exact; returns undefined for a bug", () => {
  const text = (code: SluiceErrorCode, message: string) =>
    describeError(new SluiceError(code, message))?.text;
  assert.equal(text("no_peers", "no peers"), "download not found: no peers");
  assert.equal(text("unknown_session", "it is over"), "unknown playback session id");
  assert.equal(text("session_stopped", "got newer download"), "got newer download");
  assert.equal(describeError(new TypeError("x")), undefined);
});
