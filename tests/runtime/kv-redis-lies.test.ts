import assert from "node:assert/strict";
import { createServer, type Socket } from "node:net";
import { test } from "node:test";
import { openRedis } from "../../src/runtime/kv-redis.ts";

const NO_COMMIT = "*2\r\n:1\r\n$0\r\n\r\n";

/** Replies of the server to each command, for a script the same to EVAL and EVALSHA; any other gets `+OK`. */
type Replies = Readonly<Record<string, string>>;

/** Opens a store on a server that gives these replies. Returns the reason why it does not open. */
async function refusal(replies: Replies): Promise<unknown> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => {});
    socket.on("data", (bytes) => {
      for (const [, name] of bytes.toString("latin1").matchAll(/\*\d+\r\n\$\d+\r\n([A-Za-z]+)/g))
        socket.write(replies[name!.toLowerCase().replace(/^eval$/, "evalsha")] ?? "+OK\r\n");
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as { port: number };
  try {
    const store = await openRedis(`redis://127.0.0.1:${port}`, { warn() {} });
    await store.close();
    return undefined;
  } catch (error) {
    return error;
  } finally {
    for (const socket of sockets) socket.destroy();
    server.close();
  }
}

/** The replies of a server that says it is ready, with `replies` to scripts and lists. */
const ready = (replies: Replies): Replies => ({ info: "$9\r\nloading:0\r\n", ping: "+PONG\r\n", ...replies });

for (const [name, replies] of Object.entries({
  "a number instead of a list": { evalsha: ":5\r\n" },
  "nothing instead of a list": { evalsha: "*-1\r\n" },
  "an empty list": { evalsha: "*0\r\n" },
  "a revision that is no integer": { evalsha: "*2\r\n$1\r\n1\r\n$0\r\n\r\n" },
  "lists in lists": { evalsha: `${"*1\r\n".repeat(50)}:1\r\n` },
  "a page without records": { evalsha: NO_COMMIT, hscan: "*1\r\n$1\r\n0\r\n" },
  "a key without a value": { evalsha: NO_COMMIT, hscan: "*2\r\n$1\r\n0\r\n*1\r\n$1\r\na\r\n" },
  "a value that is a list": { evalsha: NO_COMMIT, hscan: "*2\r\n$1\r\n0\r\n*2\r\n$1\r\na\r\n*0\r\n" },
  "records without end": { evalsha: NO_COMMIT, hscan: "*2\r\n$1\r\n7\r\n*2\r\n$1\r\na\r\n$1\r\n1\r\n" },
}))
  test(`openRedis: a server that replies with ${name} is refused`, async () => {
    const error = await refusal(ready(replies as Replies));
    const command = "hscan" in replies ? "HSCAN" : "EVALSHA";
    assert.match(
      String(error),
      new RegExp(`^SluiceError: the store's server: unexpected reply to ${command}`),
    );
  });

test("openRedis: a reply that the client cannot read is an unavailable store", async () => {
  for (const evalsha of ["*99999999999\r\n", "*1\r\n".repeat(200_000)])
    assert.match(String(await refusal(ready({ evalsha }))), /^SluiceError: the store's server: /);
});

test("openRedis: a password with a lone % is refused, and not repeated", async () => {
  await assert.rejects(openRedis("redis://user:50%off@127.0.0.1:1", { warn() {} }), (error: Error) => {
    assert.equal((error as { code?: string }).code, "bad_configuration");
    assert.doesNotMatch(error.message, /off/);
    return true;
  });
});
