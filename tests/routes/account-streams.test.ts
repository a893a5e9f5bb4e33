import assert from "node:assert/strict";
import { test } from "node:test";
import { AccountStreams } from "../../routes/account-streams.ts";

/** A stream of numbered bytes without an end; `cancelled` counts how many ends its readers caused. */
function endless() {
  const source = { cancelled: 0 };
  let count = 0;
  const body = new ReadableStream<Uint8Array<ArrayBuffer>>(
    {
      pull: (controller) => controller.enqueue(Uint8Array.of(count++)),
      cancel: () => {
        source.cancelled++;
      },
    },
    { highWaterMark: 0 },
  );
  return { source, response: new Response(body, { headers: { "content-type": "video/mp2t" } }) };
}

const NO_SESSIONS = { session: () => undefined };

test("AccountStreams: a body counts until its player closes it, and ends if the account starts another one", async () => {
  const streams = new AccountStreams(NO_SESSIONS);
  const [first, second] = [endless(), endless()];
  const a = streams.add("me", "192.168.1.7", 1, first.response);
  assert.equal(a.headers.get("content-type"), "video/mp2t");
  const reader = a.body!.getReader();
  assert.deepEqual((await reader.read()).value, Uint8Array.of(0));
  const b = streams.add("me", "192.168.1.7", 1, second.response);
  assert.deepEqual([await reader.read(), first.source.cancelled], [{ done: true, value: undefined }, 1]);
  assert.deepEqual([streams.open("me"), streams.open("you")], [1, 0]);
  await b.body!.cancel();
  assert.deepEqual([streams.open("me"), second.source.cancelled], [0, 1]);
});

test("AccountStreams: counts no answer without media, and a body that ends or fails no longer", async () => {
  const streams = new AccountStreams(NO_SESSIONS);
  streams.add("me", "192.168.1.7", 0, new Response(null, { status: 200 }));
  assert.equal(streams.open("me"), 0);
  const finite = streams.add("me", "192.168.1.7", 0, new Response("all"));
  assert.equal(streams.open("me"), 1);
  assert.equal(await finite.text(), "all");
  const broken = new ReadableStream({ pull: (controller) => controller.error(new Error("lost")) });
  await assert.rejects(streams.add("me", "192.168.1.7", 0, new Response(broken)).text(), /lost/);
  assert.equal(streams.open("me"), 0);
});
