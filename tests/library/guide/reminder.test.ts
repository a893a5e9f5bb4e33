import assert from "node:assert/strict";
import { test } from "node:test";
import type { UnixSeconds } from "../../../src/base/time.ts";
import type { Item, ItemFigures } from "../../../src/library/contract.ts";
import { reminderOf } from "../../../src/library/guide/reminder.ts";
import { FakeClock } from "../../engine/fake-clock.ts";

const PROGRAMME = {
  start: (Date.UTC(2026, 10, 22, 19, 0, 0) / 1000) as UnixSeconds,
  stop: (Date.UTC(2026, 10, 22, 20, 30, 0) / 1000) as UnixSeconds,
  title: "News",
  subtitle: "",
  description: "",
  categories: [],
  icon: "",
  episode: "",
};

/** The calendar file of a programme with these texts. */
async function fileOf(
  texts: Partial<Record<"title" | "subtitle" | "description", string>>,
  channel = "One",
): Promise<string> {
  const dependencies = {
    items: { figures: () => ({ hash: "ab" }) as ItemFigures },
    guide: { programmes: async () => [{ ...PROGRAMME, ...texts }] },
    clock: new FakeClock(),
  };
  const item = { id: 7, title: channel } as Item;
  const url = "http://192.168.1.5:6878/play/0/7";
  return (await reminderOf(dependencies, item, PROGRAMME.start, url))!.file;
}

/** The lines of a file, unfolded (RFC 5545, 3.1). */
function linesOf(file: string): string[] {
  return file.replace(/\r\n /g, "").split("\r\n");
}

test("reminderOf: one event in UTC with an alarm before it", async () => {
  assert.deepEqual(linesOf(await fileOf({})), [
    "BEGIN:VCALENDAR",
    "VERSION:2.0",
    "PRODID:-//Sluice//Programme guide//EN",
    "BEGIN:VEVENT",
    "UID:1795374000-ab@sluice",
    "DTSTAMP:20231114T221321Z",
    "DTSTART:20261122T190000Z",
    "DTEND:20261122T203000Z",
    "SUMMARY:News",
    "LOCATION:One",
    "URL:http://192.168.1.5:6878/play/0/7",
    "BEGIN:VALARM",
    "ACTION:DISPLAY",
    "TRIGGER:-PT5M",
    "DESCRIPTION:News",
    "END:VALARM",
    "END:VEVENT",
    "END:VCALENDAR",
    "",
  ]);
});

test("reminderOf: escapes texts, so that a guide cannot add lines or properties", async () => {
  const lines = linesOf(
    await fileOf(
      { title: "A, B; C\\D: E\r\nEND:VEVENT", subtitle: "Part\u00001", description: "x\ry\nz" },
      "One,\tTwo",
    ),
  );
  assert.ok(lines.includes("SUMMARY:A\\, B\\; C\\\\D: E\\nEND:VEVENT"));
  assert.ok(lines.includes("DESCRIPTION:Part1\\nx\\ny\\nz"));
  assert.ok(lines.includes("LOCATION:One\\,\tTwo"));
  assert.equal(lines.filter((line) => line === "END:VEVENT").length, 1);
});

test("reminderOf: folds lines at 75 bytes and never within a character", async () => {
  const title = `${"é".repeat(50)}${"🎬".repeat(40)}${"x".repeat(200)}`;
  const file = await fileOf({ title });
  for (const line of file.split("\r\n")) {
    assert.ok(new TextEncoder().encode(line).length <= 75, line);
    assert.equal(line.toWellFormed(), line);
  }
  assert.ok(file.split("\r\n").some((line) => new TextEncoder().encode(line).length === 75));
  assert.ok(linesOf(file).includes(`SUMMARY:${title}`));
});
