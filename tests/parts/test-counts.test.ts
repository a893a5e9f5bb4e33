import assert from "node:assert/strict";
import { test } from "node:test";
import { failedFilesOf } from "./test-counts.ts";

const FILES = ["tests/base/one.test.ts", "tests/net/two.test.ts"];

test("failedFilesOf: finds the files of failed tests in the output of Bun", () => {
  const output = `
tests/base/one.test.ts:
(pass) good [1.25ms]
(fail) bad: something [1.02ms]

tests/net/two.test.ts:
(fail) bad [1.19ms]
(fail) worse [1.19ms]

tests/net/three.test.ts:
(pass) fine [1.49ms]

3 tests failed:
(fail) bad: something [1.02ms]
`;
  assert.deepEqual(failedFilesOf(output), FILES);
});

test("failedFilesOf: finds the files of failed tests in the output of Deno", () => {
  const output = `./tests/net/three.test.ts => fine ... ok (1ms)

 FAILURES

bad: something \u001b[0m\u001b[38;5;245m=> ./tests/base/one.test.ts:4:1\u001b[0m
bad => ./tests/net/two.test.ts:2:1
`;
  assert.deepEqual(failedFilesOf(output), FILES);
});

test("failedFilesOf: finds the files of failed tests in the output of Node", () => {
  const output = `✔ fine (0.5ms)
✖ failing tests:

test at tests/base/one.test.ts:1:88
✖ bad: something (5.1ms)

test at tests/net/two.test.ts:1:29
✖ bad (7.9ms)
`;
  assert.deepEqual(failedFilesOf(output), FILES);
});
