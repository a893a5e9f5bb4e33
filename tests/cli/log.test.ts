import assert from "node:assert/strict";
import { test } from "node:test";
import type { LogLevel } from "../../src/base/log.ts";
import { createLog } from "../../src/cli/log.ts";

function recorded(level: LogLevel, colors = false) {
  const lines: string[] = [];
  const wallClock = () => new Date("2026-01-02T03:04:05.678Z");
  return { lines, log: createLog({ level, colors, wallClock, write: (line) => lines.push(line) }) };
}

test("createLog writes time, level, component, message and fields", () => {
  const { lines, log } = recorded("info");
  log
    .named("engine")
    .named("swarm")
    .info("a peer is gone", { peer: "1.2.3.4:5", why: "it left", n: 3, no: undefined });
  assert.deepEqual(lines, [
    '03:04:05.678 info  engine/swarm: a peer is gone peer=1.2.3.4:5 why="it left" n=3\n',
  ]);
});

test("createLog writes JSON: fields cannot replace members of the line, control characters are escaped", () => {
  const lines: string[] = [];
  const wallClock = () => new Date("2026-01-02T03:04:05.678Z");
  const write = (line: string) => void lines.push(line);
  const log = createLog({ level: "info", format: "json", colors: true, wallClock, write });
  log.named("http").warn("slow \u202e", { level: "forged", ms: 3, none: undefined });
  assert.equal(lines.length, 1);
  assert.doesNotMatch(lines[0]!, /\u202e/);
  assert.deepEqual(JSON.parse(lines[0]!), {
    time: "2026-01-02T03:04:05.678Z",
    level: "warn",
    component: "http",
    message: "slow \u202e",
    ms: 3,
  });
});

test("createLog omits lines above its level", () => {
  const { lines, log } = recorded("warn");
  log.info("no");
  log.debug("no");
  log.warn("yes");
  log.error("yes");
  assert.equal(lines.length, 2);
  const silent = recorded("silent");
  silent.log.error("no");
  assert.equal(silent.lines.length, 0);
});

test("createLog escapes control characters", () => {
  const { lines, log } = recorded("info");
  log.info("name\n03:04 error forged\x1b[2J", { name: "a\rb\u202ec" });
  assert.equal(lines.length, 1);
  assert.doesNotMatch(lines[0]!.slice(0, -1), /[\p{Cc}\u202e]/u);
});
