import assert from "node:assert/strict";
import { test } from "node:test";
import type { UnixSeconds } from "../../../src/base/time.ts";
import type { Item } from "../../../src/library/contract.ts";
import type { Guide, Programme } from "../../../src/library/guide/guide-contract.ts";
import { GuideFile } from "../../../src/library/guide/guide-file.ts";
import { searchProgrammes } from "../../../src/library/guide/programme-search.ts";
import { files } from "../../../src/runtime/files.ts";
import { FakeClock } from "../../engine/fake-clock.ts";
import { tempFolder } from "../../parts/torrent-files.ts";

const NOW = new FakeClock().unixSeconds();
const TEXTS = { subtitle: "", description: "", categories: [], icon: "", episode: "" };

/** A guide of two channels with lines of many lengths, in several blocks of 64 KiB. */
async function largeGuide(t: { after(run: () => unknown): void }, count: number) {
  const folder = await tempFolder("guide-search");
  t.after(() => folder.remove());
  const writer = await GuideFile.create(files, folder.file("guide.jsonl"));
  for (let i = 0; i < count; i++)
    writer.addProgramme({
      ...TEXTS,
      channel: i % 3 === 0 ? "other" : "mine",
      start: (NOW + 60 * i) as UnixSeconds,
      stop: undefined,
      title: `Show “${i}”`,
      subtitle: i === 7 ? 'A "quoted" C:\\path' : "",
      description: "é".repeat((i * 37) % 1_000),
    });
  await writer.finish();
  const guide = await GuideFile.open(files, folder.file("guide.jsonl"));
  t.after(() => guide.close());
  const search = async (ids: string[], part: string, from: UnixSeconds = NOW) => {
    const found: { channel: string; programme: Programme }[] = [];
    for await (const some of guide.search(ids, part, from)) found.push(...some);
    return found;
  };
  return search;
}

test("GuideFile: a channel with more programmes than can be sorted at once is refused", async (t) => {
  const folder = await tempFolder("guide-limit");
  t.after(() => folder.remove());
  const guide = await GuideFile.create(files, folder.file("guide.jsonl"));
  for (let i = 0; i <= 105_000; i++) {
    guide.addProgramme({ ...TEXTS, channel: "one", start: i as UnixSeconds, stop: undefined, title: "" });
    await guide.flush();
  }
  await guide.finish();
  const opened = GuideFile.open(files, folder.file("guide.jsonl"));
  await assert.rejects(opened, /more than 105000 programmes of one channel/);
});

test("GuideFile.search: finds every programme of the given channels once, across all blocks", async (t) => {
  const search = await largeGuide(t, 900);
  const numbers = (await search(["mine", "unknown"], "show")).map(
    ({ programme }) => (programme.start - NOW) / 60,
  );
  const expected = Array.from({ length: 900 }, (_, i) => i).filter((i) => i % 3 !== 0);
  assert.deepEqual(numbers, expected);
  assert.equal((await search(["mine", "other"], "show")).length, 900);
});

test("GuideFile.search: titles and subtitles, not descriptions; from a time on; quotes and backslashes", async (t) => {
  const search = await largeGuide(t, 300);
  assert.deepEqual(await search(["mine"], "eee"), [], "descriptions are not searched");
  const [quoted] = await search(["mine"], '"quoted" c:\\p');
  assert.equal(quoted?.programme.title, "Show “7”");
  // A programme without a stop time ends when the next one of its channel starts.
  assert.equal(quoted?.programme.stop, NOW + 60 * 8);
  const late = await search(["mine"], "show", (NOW + 60 * 298 + 1) as UnixSeconds);
  assert.deepEqual(
    late.map(({ programme }) => programme.title),
    ["Show “298”", "Show “299”"],
  );
});

/** Searches a guide whose only channel yields these batches of start times; each batch takes `batchMs`. */
function searchIn(batches: readonly (readonly number[] | undefined)[], batchMs = 0) {
  const clock = new FakeClock();
  const item = { id: 1, title: "Mine" } as Item;
  const batch = [[item]];
  const guide: Pick<Guide, "match" | "search"> = {
    match: () => ({ channel: { key: "1/mine", id: "mine", names: [], icon: "" }, reason: "id" }),
    async *search(keys) {
      for (const starts of batches) {
        await clock.advance(batchMs);
        yield starts?.map((start) => ({
          key: keys[0]!,
          programme: { ...TEXTS, title: "x", start: start as UnixSeconds, stop: (start + 1) as UnixSeconds },
        }));
      }
    },
  };
  const items = { read: () => ({ next: async () => batch.pop() ?? [] }) };
  return searchProgrammes({ items, guide, clock }, "x");
}

test("searchProgrammes: returns the 100 earliest of many matches and says that there are more", async () => {
  const starts = Array.from({ length: 250 }, (_, i) => (i * 7) % 250);
  const { found, isComplete } = await searchIn([starts.slice(0, 90), starts.slice(90)]);
  assert.deepEqual(
    found.map(({ programme }) => programme.start),
    Array.from({ length: 100 }, (_, i) => i),
  );
  assert.equal(isComplete, false);
});

test("searchProgrammes: a slow search ends with what it found; an unreadable guide makes it incomplete", async () => {
  const slow = await searchIn([[3], [1], [2]], 5_000);
  assert.deepEqual([slow.found.map(({ programme }) => programme.start), slow.isComplete], [[1, 3], false]);
  const damaged = await searchIn([[1], undefined, [2]]);
  assert.deepEqual([damaged.found.length, damaged.isComplete], [2, false]);
});
