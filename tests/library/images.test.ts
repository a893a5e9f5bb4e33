import assert from "node:assert/strict";
import { test } from "node:test";
import { runtime } from "#runtime";
import { SILENT_LOG } from "../../src/base/log.ts";
import { imageType } from "../../src/library/image-type.ts";
import { createImages } from "../../src/library/images.ts";
import type { Files } from "../../src/runtime/contract.ts";
import { inFolder } from "../contract/folder.ts";
import { FakeClock } from "../engine/fake-clock.ts";

/** The first bytes of a PNG of this size. */
function png(width: number, height: number, filler = 0): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(64).fill(filler, 33);
  bytes.set([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0, 0, 0, 13, 0x49, 0x48, 0x44, 0x52]);
  const view = new DataView(bytes.buffer);
  view.setUint32(16, width);
  view.setUint32(20, height);
  return bytes;
}

const hex = (text: string) => Uint8Array.from(text.match(/../g) ?? [], (pair) => Number.parseInt(pair, 16));

const TYPES: readonly (readonly [name: string, bytes: Uint8Array, type: string | undefined])[] = [
  ["a PNG", png(1, 1), "image/png"],
  ["a PNG of no width", png(0, 1), undefined],
  ["a PNG of 8193 pixels", png(1, 8193), undefined],
  ["a PNG cut off in its head", png(1, 1).subarray(0, 20), undefined],
  ["a GIF", hex("474946383961010001008000000000"), "image/gif"],
  ["a GIF cut off", hex("47494638396101"), undefined],
  [
    "a lossless WebP",
    hex("524946461a000000574542505650384c0d0000002f0000000000000000000000000000"),
    "image/webp",
  ],
  ["RIFF that is no WebP", hex(`5249464600000000${"57415645".padEnd(60, "0")}`), undefined],
  [
    "a JPEG with a comment",
    hex("ffd8fffe000461624fc0".replace("4fc0", "ffc0000b080010001001011100")),
    "image/jpeg",
  ],
  ["a JPEG whose segment has no length", hex("ffd8ffe00000ffc0000b08001000100101"), undefined],
  ["a JPEG without a frame", hex("ffd8ffd9ffd9ffd9ffd9"), undefined],
  [
    "SVG",
    new TextEncoder().encode('<svg xmlns="http://www.w3.org/2000/svg" width="1" height="1"/>'),
    undefined,
  ],
  ["a web page", new TextEncoder().encode("<!doctype html><title>404</title><p>not here</p>"), undefined],
  ["nothing", new Uint8Array(), undefined],
];

for (const [name, bytes, type] of TYPES)
  test(`imageType: ${name} is ${type ?? "refused"}`, () => assert.equal(imageType(bytes), type));

test("imageType: never reads beyond a truncated input", () => {
  for (const [, bytes] of TYPES)
    for (let end = 0; end <= bytes.length; end++) imageType(bytes.subarray(0, end));
});

/** Images in a temporary folder, and fake servers with one picture per URL. */
function kept(
  folder: string,
  web: Map<string, Uint8Array<ArrayBuffer>>,
  clock = new FakeClock(),
  files: Files = runtime.files,
) {
  const asked: string[] = [];
  const images = createImages({
    files,
    clock,
    sha1: runtime.sha1,
    log: SILENT_LOG,
    folder,
    outbound: {
      async get(url, { allowPrivate }) {
        asked.push(`${url} ${allowPrivate}`);
        const bytes = web.get(url);
        return {
          status: bytes ? 200 : 404,
          headers: new Headers(),
          bytes: bytes ?? new Uint8Array(),
          finalUrl: url,
        };
      },
    },
  });
  return { images, asked, clock };
}

test("Images.put: uploads persist and are named by their hash", () =>
  inFolder(async (folder) => {
    const first = await kept(folder, new Map()).images;
    const id = await first.put(png(3, 4));
    assert.equal(await first.put(png(3, 4)), id);
    const again = await kept(folder, new Map()).images;
    assert.deepEqual(await again.get(id), { mime: "image/png", bytes: png(3, 4) });
    for (const bad of ["", "../images", "0".repeat(40), `${id}/`])
      assert.equal(await again.get(bad), undefined);
  }));

test("Images.put: refuses files that are not pictures or too large", () =>
  inFolder(async (folder) => {
    const images = await kept(folder, new Map()).images;
    await assert.rejects(images.put(new TextEncoder().encode("<svg/>")), { code: "bad_image" });
    const large = new Uint8Array(1024 * 1024 + 1);
    large.set(png(1, 1));
    await assert.rejects(images.put(large), { code: "bad_image" });
  }));

test("Images.fetch: caches for a week, and does not retry a failure at once", () =>
  inFolder(async (folder) => {
    const url = "http://pictures.example/a.png";
    const { images, asked, clock } = kept(folder, new Map([[url, png(1, 1)]]));
    const options = { allowPrivateUrls: false };
    const all = await Promise.all([1, 2, 3].map(async () => (await images).fetch(url, options)));
    assert.deepEqual(
      all.map((image) => image?.mime),
      ["image/png", "image/png", "image/png"],
    );
    assert.equal((await (await images).fetch(url, options))?.mime, "image/png");
    assert.deepEqual(asked, [`${url} false`]);
    for (let i = 0; i < 3; i++)
      assert.equal(await (await images).fetch("http://none.example/", options), undefined);
    assert.equal(asked.length, 2);
    await clock.advance(11 * 60_000);
    await (await images).fetch("http://none.example/", options);
    assert.equal(asked.length, 3);
  }));

test("Images.fetch: a picture from a private address is not shown to a client without access", () =>
  inFolder(async (folder) => {
    const url = "http://192.168.1.1/a.png";
    const { images, asked } = kept(folder, new Map([[url, png(1, 1)]]));
    await (await images).fetch(url, { allowPrivateUrls: true });
    await (await images).fetch(url, { allowPrivateUrls: false });
    assert.deepEqual(asked, [`${url} true`, `${url} false`]);
  }));

test("Images.fetch: refuses other files; a full disk does not prevent showing a picture", () =>
  inFolder(async (folder) => {
    const web = new Map([
      ["http://a.example/", new TextEncoder().encode("<html>")],
      ["http://b.example/", png(2, 2)],
    ]);
    const { images } = kept(folder, web);
    assert.equal(await (await images).fetch("http://a.example/", { allowPrivateUrls: false }), undefined);
    // A file in place of the folder makes writes fail.
    await runtime.files.replace(`${folder}/fetched-images`, new Uint8Array(1));
    const got = await (await images).fetch("http://b.example/", { allowPrivateUrls: false });
    assert.equal(got?.mime, "image/png");
  }));

test("Images.fetch: the cached pictures have at most 128 MiB, also those of an earlier start", () =>
  inFolder(async (folder) => {
    // Each file has 8 MiB for the cache.
    const size = 8 * 1024 * 1024;
    const files: Files = {
      ...runtime.files,
      async stat(path) {
        const facts = await runtime.files.stat(path);
        return facts && { ...facts, size };
      },
    };
    const urls = Array.from({ length: 20 }, (_, i) => `http://pictures.example/${i}.png`);
    const web = new Map(urls.map((url) => [url, png(1, 1)]));
    const options = { allowPrivateUrls: false };
    for (const some of [urls.slice(0, 19), urls.slice(19)]) {
      const { images } = kept(folder, web, new FakeClock(), files);
      for (const url of some) await (await images).fetch(url, options);
    }
    // The second start counts twenty, and keeps nine tenths of the limit.
    assert.equal((await files.list(`${folder}/fetched-images`)).length, 14);
  }));
