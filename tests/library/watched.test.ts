import assert from "node:assert/strict";
import { test } from "node:test";
import { createWatched } from "../../src/library/watched.ts";
import { MapStore } from "./map-store.ts";

const film = (number: number) => ({
  infohash: number.toString(16).padStart(40, "0"),
  fileIndex: 0,
  title: `Film ${number}`,
  link: "magnet:?xt=urn:btih:a",
  position: 10,
  duration: 100,
  updatedAt: number,
});

test("watched: keeps the latest 100 films of a profile, the latest first", async () => {
  const watched = createWatched(new MapStore());
  for (let number = 1; number <= 103; number++) await watched.keep("", film(number));
  await watched.keep("", { ...film(50), position: 20, updatedAt: 200 });
  const films = await watched.list("");
  assert.equal(films.length, 100);
  assert.deepEqual([films[0]!.title, films[0]!.position, films[1]!.title], ["Film 50", 20, "Film 103"]);
});

test("watched: profiles are separate, also with names that contain slashes, and there are at most 32", async () => {
  const watched = createWatched(new MapStore());
  await watched.keep("a", film(1));
  await watched.keep("a/b", film(2));
  assert.deepEqual([...(await watched.profiles())].sort(), ["a", "a/b"]);
  assert.deepEqual(
    (await watched.list("a")).map(({ title }) => title),
    ["Film 1"],
  );
  for (let number = 3; number <= 32; number++) await watched.keep(`profile ${number}`, film(1));
  await assert.rejects(watched.keep("one more", film(1)), { code: "too_many" });
  await watched.keep("a", film(3));
});

test("watched: forgets one film or all, and refuses invalid ones", async () => {
  const watched = createWatched(new MapStore());
  for (const number of [1, 2, 3]) await watched.keep("", film(number));
  await watched.forget("", film(2));
  assert.deepEqual(
    (await watched.list("")).map(({ title }) => title),
    ["Film 3", "Film 1"],
  );
  await watched.forget("");
  assert.deepEqual(await watched.list(""), []);
  for (const wrong of [{ infohash: "x" }, { title: "x".repeat(10_000) }, { position: Number.NaN }])
    await assert.rejects(watched.keep("", { ...film(1), ...wrong }), { code: "bad_parameter" });
});
