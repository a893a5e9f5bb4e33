import assert from "node:assert/strict";
import { test } from "node:test";
import { SluiceError } from "../../src/base/errors.ts";
import { SILENT_LOG } from "../../src/base/log.ts";
import { createTasks, formatCount, type Progress } from "../../src/library/tasks.ts";
import { FakeClock, settled } from "../engine/fake-clock.ts";

function open() {
  const clock = new FakeClock();
  const tasks = createTasks({ clock, log: SILENT_LOG });
  const start = (
    run: (progress: Progress) => Promise<string>,
    category: "content" | "broadcast" = "content",
  ) => tasks.start({ category, title: "Importing x", actions: ["reload_playlist"], run });
  return { clock, tasks, start };
}

test("Tasks: a running task reports progress; an ended one its summary, for a minute", async () => {
  const { clock, tasks, start } = open();
  let end: (message: string) => void = () => {};
  const id = start(({ report }) => {
    report(12_000, 20_000, "items");
    return new Promise((resolve) => {
      end = resolve;
    });
  });
  assert.deepEqual(
    tasks.list().map(({ message, state, done, total }) => ({ message, state, done, total })),
    [{ message: "Importing x: 12,000 of 20,000 items", state: "running", done: 12_000, total: 20_000 }],
  );
  end("Imported x");
  await settled();
  const ended = tasks.get(id);
  assert.equal(ended?.state, "done");
  assert.equal(ended?.message, "Imported x");
  assert.deepEqual(ended?.actions, ["reload_playlist"]);
  await clock.advance(59_000);
  assert.equal(tasks.list().length, 1);
  await clock.advance(2_000);
  assert.equal(tasks.list().length, 0);
  assert.equal(tasks.get(id), undefined);
});

test("Tasks: a failed task reports its problem", async () => {
  const { tasks, start } = open();
  const id = start(() => Promise.reject(new SluiceError("not_a_playlist", "a web page came")));
  await settled();
  assert.equal(tasks.get(id)?.state, "failed");
  assert.equal(tasks.get(id)?.problem, "a web page came");
  assert.equal(tasks.get(id)?.message, "Importing x");
});

test("Tasks: ids are not reused; list filters by category", async () => {
  const { tasks, start } = open();
  const a = start(async () => "a");
  const b = start(async () => "b", "broadcast");
  await settled();
  assert.notEqual(a, b);
  assert.deepEqual(
    tasks.list("broadcast").map(({ id }) => id),
    [b],
  );
  assert.equal(tasks.list("").length, 2);
  assert.equal(tasks.list().length, 2);
});

test("Tasks.close: aborts running tasks, waits for them, and starts no more", async () => {
  const { tasks, start } = open();
  let isOver = false;
  start(
    ({ signal }) =>
      new Promise((_, reject) => {
        signal.addEventListener("abort", () => {
          isOver = true;
          reject(signal.reason);
        });
      }),
  );
  await tasks.close();
  assert.ok(isOver);
  assert.throws(() => start(async () => ""), /engine is stopping/);
});

test("Tasks: the numbers of running and ended tasks are limited", async () => {
  const { tasks, start } = open();
  for (let i = 0; i < 1_000; i++) start(async () => "");
  await settled();
  assert.ok(tasks.list().length <= 500);
  const never = () => new Promise<string>(() => {});
  assert.throws(
    () => {
      for (let i = 0; i < 2_000; i++) start(never);
    },
    (error) => error instanceof SluiceError && error.code === "too_many",
  );
});

test("formatCount: separates thousands", () => {
  assert.deepEqual([0, 999, 1000, 1234567].map(formatCount), ["0", "999", "1,000", "1,234,567"]);
});
