import assert from "node:assert/strict";
import { test } from "node:test";
import { MAX_VALUE_BYTES } from "../../src/base/store-limits.ts";
import type { UnixSeconds } from "../../src/base/time.ts";
import { newItem, withChange, withSource } from "../../src/library/item-changes.ts";
import { fitDraft, readChange, readDraft, type SourceMembers } from "../../src/library/item-members.ts";
import { decodeItem, encodeItem, idOfKey, itemKey, recordBytes } from "../../src/library/item-record.ts";
import { MAX_TEXTS } from "../../src/library/limits.ts";
import { listed, swarmContent } from "./item-parts.ts";

const now = 1_700_000_000 as UnixSeconds;
const origin = { externalPlaylistId: 1, sourceKey: "key" };

test("decodeItem: inverts encodeItem, which omits defaults", () => {
  const plain = newItem(
    7,
    readDraft({ title: "One", content: swarmContent(1) }),
    { externalPlaylistId: -1, sourceKey: null },
    now,
  );
  const record = encodeItem(plain);
  assert.deepEqual(Object.keys(record).sort(), ["content", "createdAt", "title"]);
  assert.deepEqual(decodeItem(7, JSON.parse(JSON.stringify(record))), plain);
  const full = withChange(
    newItem(
      8,
      fitDraft(listed(1, { tags: ["a"], languages: ["eng"], isLive: 0, fileCount: 3 }))!,
      origin,
      now,
    ),
    readChange({ title: "Mine", tags: [], isEnabled: false, logo: "a".repeat(40) }),
    (now + 1) as UnixSeconds,
  )!;
  assert.deepEqual(full.item.edited, ["title", "tags", "logo", "isEnabled"]);
  assert.deepEqual(decodeItem(8, JSON.parse(JSON.stringify(encodeItem(full)))), full);
});

test("decodeItem: undefined for damaged records", () => {
  const good = encodeItem(newItem(1, readDraft(listed(1)), origin, now));
  assert.notEqual(decodeItem(1, good), undefined);
  const broken: unknown[] = [
    undefined,
    null,
    7,
    "x",
    [],
    {},
    { ...good, title: 5 },
    { ...good, createdAt: -1 },
  ];
  broken.push({ ...good, content: { infohash: "zz" } }, { ...good, isLive: 2 }, { ...good, edited: ["id"] });
  broken.push({ ...good, tags: [1] }, { ...good, source: { title: 1 } }, { ...good, deletedAt: 1.5 });
  for (const value of broken) assert.equal(decodeItem(1, value), undefined, JSON.stringify(value));
});

test("idOfKey: inverts itemKey and refuses other keys", () => {
  assert.equal(itemKey(123), "item/0000000123");
  assert.equal(idOfKey("item/0000000123"), 123);
  for (const key of ["item/123", "item/00000001234", "item/000000012x", "item/"])
    assert.equal(idOfKey(key), undefined);
});

test("recordBytes: the longest allowed texts fit a record twice", () => {
  const long = (units: number) => "語".repeat(units);
  const members = (tag: string) =>
    readDraft(
      listed(1, {
        title: long(300),
        description: long(4000),
        displayTitle: long(300),
        tvgName: long(300),
        poster: `https://x/${long(3800)}`,
        subcategory: tag,
      }),
    );
  const first = newItem(1, members("a"), { externalPlaylistId: 1, sourceKey: long(1024) }, now);
  const edited = withChange(
    first,
    readChange({ title: long(299), description: long(3999), poster: `https://y/${long(3800)}` }),
    now,
  )!;
  const again = withSource(edited, { ...members("b"), title: long(298) } as SourceMembers, now)!;
  assert.ok(recordBytes(encodeItem(again)) > 40_000);
  assert.ok(recordBytes(encodeItem(again)) <= MAX_VALUE_BYTES);
  assert.throws(
    () =>
      readDraft(
        listed(1, {
          description: long(4000),
          poster: `https://x/${long(4000)}`,
          tvgLogo: `https://x/${long(4000)}`,
        }),
      ),
    /at most 9000/,
  );
  assert.ok(MAX_TEXTS * 3 * 2 < MAX_VALUE_BYTES);
});

test("readDraft, fitDraft: refuse the user's invalid values, cut those of a source", () => {
  const refused = (draft: Parameters<typeof readDraft>[0]) => () => readDraft(draft);
  assert.throws(refused({ title: " ", content: swarmContent(1) }), /title: expected a text/);
  assert.throws(
    refused({ title: "x".repeat(301), content: swarmContent(1) }),
    /title: expected at most 300 characters, got 301/,
  );
  const file = { ...listed(1).content, url: "file:///etc/passwd" };
  assert.throws(refused({ title: "x", content: file }), /http or https/);
  assert.throws(refused({ title: "x", content: { ...swarmContent(1), infohash: null } }), /content/);
  assert.throws(refused({ title: "x", content: swarmContent(1), logo: "../x" }), /logo/);
  assert.equal(fitDraft({ title: "x", content: file }), undefined);
  const cut = fitDraft(
    listed(1, {
      title: `a\u0000b\ud800${"x".repeat(400)}`,
      poster: `http://x/${"y".repeat(5000)}`,
      tags: ["a", " a ", "", "b\nc"],
      languages: ["eng", "<b>"],
    }),
  )!;
  assert.equal(cut.title.length, 300);
  assert.ok(cut.title.startsWith("a b\ufffdxxx"));
  assert.equal(cut.poster, "");
  assert.deepEqual(cut.tags, ["a", "b c"]);
  assert.deepEqual(cut.languages, ["eng"]);
});
