import assert from "node:assert/strict";
import { test } from "node:test";
import { runtime } from "#runtime";
import type { PeerAddress } from "../../../src/base/address.ts";
import { latin1Bytes } from "../../../src/base/bytes.ts";
import { alsoListening, alsoUdp } from "../../../src/engine/reach/also-at.ts";
import {
  type ForwardedPort,
  followForwardedPort,
  readPort,
} from "../../../src/engine/reach/forwarded-port.ts";
import { bindSharedUdp } from "../../../src/engine/reach/shared-udp.ts";
import { freePort } from "../../parts/engine.ts";
import { FakeClock } from "../fake-clock.ts";
import { keepingLog } from "../parts.ts";

const PORTS: readonly [text: string, port: number | RegExp][] = [
  ["51413", 51_413],
  ["51413\n", 51_413],
  [" 51413 \r\nrest\n", 51_413],
  ["65535", 65_535],
  ["", /none now/],
  ["0\n", /none now/],
  ["65536", /expected a port, got "65536"/],
  ["51413 udp", /expected a port/],
  ["0x50", /expected a port/],
  ["x".repeat(1000), /expected a port, got "x{40}"/],
];
for (const [text, expected] of PORTS) {
  test(`readPort: ${JSON.stringify(text.slice(0, 30))}: ${expected}`, () => {
    const read = readPort(text);
    if (typeof expected === "number") assert.equal(read, expected);
    else assert.match(String(read), expected);
  });
}

/** What a file holds, or a command prints, as the test says. */
function source(kind: "file" | "command") {
  const clock = new FakeClock();
  const log = keepingLog();
  const at = { text: "51413\n" as string | undefined, asked: 0 };
  const forwarded = followForwardedPort(
    {
      clock,
      files: {
        ...runtime.files,
        async read() {
          at.asked++;
          return at.text === undefined ? undefined : latin1Bytes(at.text);
        },
      },
      surroundings: {
        ...runtime.surroundings,
        async run(commandLine) {
          assert.equal(commandLine, "tell-port --now");
          at.asked++;
          if (at.text === undefined) throw new Error("exit code 1");
          return at.text;
        },
      },
    },
    kind === "file"
      ? { portFile: "/run/port", portCommand: "tell-port" }
      : { portFile: "", portCommand: "tell-port --now" },
    log,
  );
  const seen: (number | undefined)[] = [];
  forwarded.follow((port) => seen.push(port));
  return { clock, log, at, forwarded, seen };
}

test("followForwardedPort: a file is followed while it changes", async () => {
  const { clock, log, at, forwarded, seen } = source("file");
  await clock.advance(0);
  assert.equal(forwarded.port, 51_413);
  at.text = "40001";
  await clock.advance(5_000);
  assert.deepEqual(seen, [51_413, 40_001]);
  const late: (number | undefined)[] = [];
  forwarded.follow((port) => late.push(port));
  assert.deepEqual(late, [40_001]);
  assert.deepEqual(log.warnings, []);
  forwarded.close();
  assert.equal(clock.waiting, 0);
});

test("followForwardedPort: a file that is empty for a moment changes nothing; one that stays so does", async () => {
  const { clock, log, at, seen } = source("file");
  await clock.advance(0);
  at.text = "";
  await clock.advance(5_000);
  at.text = "51413";
  await clock.advance(5_000);
  assert.deepEqual(seen, [51_413]);
  assert.deepEqual(log.warnings, []);
  at.text = undefined;
  await clock.advance(60_000);
  assert.deepEqual(seen, [51_413, undefined]);
  assert.equal(log.warnings.length, 1, "it is said once");
  at.text = "51414";
  await clock.advance(5_000);
  assert.deepEqual(seen, [51_413, undefined, 51_414]);
});

test("followForwardedPort: a command is asked each minute; where it fails, the port is no more", async () => {
  const { clock, log, at, seen } = source("command");
  await clock.advance(10 * 60_000);
  assert.equal(at.asked, 11);
  at.text = undefined;
  await clock.advance(3 * 60_000);
  assert.deepEqual(seen, [51_413, undefined]);
  assert.equal(log.warnings.length, 1);
});

/** A forwarded port that the test moves. */
function movable() {
  const followers: ((port: number | undefined) => void)[] = [];
  const forwarded: ForwardedPort & { port: number | undefined } = {
    port: undefined,
    follow: (changed) => void followers.push(changed),
    close() {},
  };
  const move = (port: number | undefined) => {
    forwarded.port = port;
    for (const changed of followers) changed(port);
  };
  return { forwarded, move };
}

/** Tries until a connection to a port of this machine stands, or is refused, as wished. */
async function until(port: number, isOpen: boolean): Promise<void> {
  for (let tries = 0; tries < 600; tries++) {
    const opened = await new Promise<boolean>((resolve) => {
      const opened = () => {
        resolve(true);
        socket.close();
      };
      const handlers = { opened, received() {}, drained() {}, closed: () => resolve(false) };
      const socket = runtime.net.connect({ host: "127.0.0.1", port }, handlers, { timeoutMs: 5_000 });
    });
    if (opened === isOpen) return;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  assert.fail(`port ${port} did not ${isOpen ? "open" : "close"}`);
}

test("alsoListening: peers come by our own port and by the forwarded one, whichever it is", {
  timeout: 60_000,
}, async () => {
  const { forwarded, move } = movable();
  const [one, two] = [await freePort(), await freePort()];
  const log = keepingLog();
  const listen = alsoListening(runtime.net.listen, forwarded, log);
  const listener = await listen({ host: "127.0.0.1", port: 0 }, (socket) => {
    socket.close();
    return { received() {}, drained() {}, closed() {} };
  });
  move(one);
  await until(one, true);
  await until(listener.address.port, true);
  move(two);
  await until(two, true);
  await until(one, false);
  // Our own port, forwarded, is open already.
  move(listener.address.port);
  await until(two, false);
  await until(listener.address.port, true);
  assert.deepEqual(log.warnings, []);
  await listener.close();
  await until(listener.address.port, false);
});

test("alsoUdp: who calls at the forwarded port is answered from it, and others from ours", {
  timeout: 60_000,
}, async (context) => {
  const { forwarded, move } = movable();
  const log = keepingLog();
  const own = await bindSharedUdp(runtime.net, log, { host: "127.0.0.1", port: 0 });
  const shared = alsoUdp(runtime.net, own, "127.0.0.1", forwarded, log);
  context.after(() => shared.close());
  shared.listen("dht", (bytes, from) => shared.send(bytes, from));
  const port = await freePort();
  move(port);
  const answeredFrom = async (to: number): Promise<number> => {
    let answered: (from: PeerAddress) => void = () => {};
    const answer = new Promise<PeerAddress>((resolve) => {
      answered = resolve;
    });
    const socket = await runtime.net.bindUdp({ host: "127.0.0.1", port: 0 }, (_, from) => answered(from));
    // Until it listens there: datagrams are lost.
    const again = setInterval(() => socket.send(latin1Bytes("de"), { host: "127.0.0.1", port: to }), 50);
    const from = await answer;
    clearInterval(again);
    socket.close();
    return from.port;
  };
  assert.equal(await answeredFrom(port), port);
  assert.equal(await answeredFrom(own.port), own.port);
});
