import assert from "node:assert/strict";
import { test } from "node:test";
import { statusFault } from "../../../src/transfer/web-seeds/seed-fault.ts";

for (const [status, retry, message] of [
  [404, "missing", /404/],
  [410, "missing", /410/],
  [408, "later", /408/],
  [429, "later", /429/],
  [503, "later", /503/],
  [403, "never", /403$/],
  [416, "never", /416: .*shorter/],
] as const) {
  test(`statusFault: ${status} means ${retry}`, () => {
    const fault = statusFault(status, new Headers({ "retry-after": "7" }));
    assert.equal(fault.retry, retry);
    assert.match(fault.message, message);
    assert.equal(fault.retryMs, retry === "later" ? 7000 : undefined);
  });
}
