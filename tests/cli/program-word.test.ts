import assert from "node:assert/strict";
import { test } from "node:test";
import { programWord } from "../../src/cli/program-word.ts";

test("programWord: what the reader's own shell takes", () => {
  const started = { npm_lifecycle_event: "start" };
  assert.equal(programWord({}), "sluice");
  assert.equal(programWord({ npm_lifecycle_event: "test" }), "sluice");
  assert.equal(
    programWord({ ...started, npm_config_user_agent: "npm/10.2.4 node/v22.13.0" }),
    "npm start --",
  );
  assert.equal(
    programWord({ ...started, npm_config_user_agent: "bun/1.4.5 npm/? node/v24" }),
    "bun run start",
  );
});
