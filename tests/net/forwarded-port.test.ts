import assert from "node:assert/strict";
import { test } from "node:test";
import { runtime } from "#runtime";
import type { PeerAddress } from "../../src/base/address.ts";
import { latin1Bytes } from "../../src/base/bytes.ts";
import { listenAtForwardedPort, udpAtForwardedPort } from "../../src/net/forwarded-listeners.ts";
import { type ForwardedPort, followForwardedPort } from "../../src/net/forwarded-port.ts";
import { bindSharedUdp } from "../../src/net/shared-udp.ts";
import { FakeClock } from "../engine/fake-clock.ts";
import { keepingLog } from "../engine/parts.ts";
import { freePort } from "../parts/engine.ts";

const PORTS: readonly [text: string, port: number | RegExp][] = [
  ["51413", 51_413],
  ["51413\n", 51_413],
  [" 51413 \r\nrest\n", 51_413],
  ["65535", 65_535],
  ["", /no port is forwarded/],
  ["0\n", /no port is forwarded/],
  ["65536", /expected a port, got "65536"/],
  ["51413 udp", /expected a port/],
  ["0x50", /expected a port/],
  ["x".repeat(1000), /expected a port, got "x{40}"/],
];
for (const [text, expected] of PORTS) {
  test(`followForwardedPort: ${JSON.stringify(text.slice(0, 30))}: ${expected}`, async () => {
    const { clock, at, forwarded, problems } = source("file", text);
    await clock.advance(0);
    assert.equal(at.reads, 1);
    if (typeof expected === "number") assert.equal(forwarded.port, expected);
    else assert.match(problems[0]!, expected);
    forwarded.close();
  });
}

/** Follows a fake file or command with the content `at.text`. */
function source(kind: "file" | "command", text = "51413\n") {
  const clock = new FakeClock();
  const log = keepingLog();
  const problems: string[] = [];
  const at = { text: text as string | undefined, reads: 0 };
  const forwarded = followForwardedPort(
    {
      clock,
      files: {
        ...runtime.files,
        async read() {
          at.reads++;
          return at.text === undefined ? undefined : latin1Bytes(at.text);
        },
      },
      surroundings: {
        ...runtime.surroundings,
        async run(commandLine) {
          assert.equal(commandLine, "print-port --now");
          at.reads++;
          if (at.text === undefined) throw new Error("exit code 1");
          return at.text;
        },
      },
    },
    kind === "file"
      ? { portFile: "/run/port", portCommand: "print-port" }
      : { portFile: "", portCommand: "print-port --now" },
    {
      ...log,
      warn: (message, fields) => {
        problems.push(String(fields?.reason));
        log.warn(message, fields);
      },
    },
  );
  const seen: (number | undefined)[] = [];
  forwarded.onChange((port) => seen.push(port));
  return { clock, log, at, forwarded, seen, problems };
}

test("followForwardedPort: follows the changes of a file", async () => {
  const { clock, log, at, forwarded, seen } = source("file");
  await clock.advance(0);
  assert.equal(forwarded.port, 51_413);
  at.text = "40001";
  await clock.advance(5_000);
  assert.deepEqual(seen, [51_413, 40_001]);
  const late: (number | undefined)[] = [];
  forwarded.onChange((port) => late.push(port));
  assert.deepEqual(late, [40_001]);
  assert.deepEqual(log.warnings, []);
  forwarded.close();
  assert.equal(clock.waiting, 0);
});

test("followForwardedPort: a file that is empty for a moment changes nothing; a lasting absence does", async () => {
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
  assert.equal(log.warnings.length, 1, "logged once");
  at.text = "51414";
  await clock.advance(5_000);
  assert.deepEqual(seen, [51_413, undefined, 51_414]);
});

test("followForwardedPort: runs the command every minute; if it fails, the port is gone", async () => {
  const { clock, log, at, seen } = source("command");
  await clock.advance(10 * 60_000);
  assert.equal(at.reads, 11);
  at.text = undefined;
  await clock.advance(3 * 60_000);
  assert.deepEqual(seen, [51_413, undefined]);
  assert.equal(log.warnings.length, 1);
});

/** A forwarded port that the test changes. */
function movable() {
  const followers: ((port: number | undefined) => void)[] = [];
  const forwarded: ForwardedPort & { port: number | undefined } = {
    port: undefined,
    onChange: (changed) => void followers.push(changed),
    close() {},
  };
  const move = (port: number | undefined) => {
    forwarded.port = port;
    for (const changed of followers) changed(port);
  };
  return { forwarded, move };
}

/** Waits until a port of this machine accepts (or refuses) connections. */
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

test("listenAtForwardedPort: accepts peers at our own port and at the present forwarded port", {
  timeout: 60_000,
}, async () => {
  const { forwarded, move } = movable();
  const [one, two] = [await freePort(), await freePort()];
  const log = keepingLog();
  const listen = listenAtForwardedPort(runtime.net.listen, forwarded, log);
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
  // If our own port is forwarded, it is already open.
  move(listener.address.port);
  await until(two, false);
  await until(listener.address.port, true);
  assert.deepEqual(log.warnings, []);
  await listener.close();
  await until(listener.address.port, false);
});

test("udpAtForwardedPort: replies leave from the port at which the datagram arrived", {
  timeout: 60_000,
}, async (context) => {
  const { forwarded, move } = movable();
  const log = keepingLog();
  const own = await bindSharedUdp(runtime.net, log, { host: "127.0.0.1", port: 0 });
  const shared = udpAtForwardedPort(runtime.net, own, "127.0.0.1", forwarded, log);
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
    // Repeated, because datagrams are lost until the socket is open.
    const again = setInterval(() => socket.send(latin1Bytes("de"), { host: "127.0.0.1", port: to }), 50);
    const from = await answer;
    clearInterval(again);
    socket.close();
    return from.port;
  };
  assert.equal(await answeredFrom(port), port);
  assert.equal(await answeredFrom(own.port), own.port);
});
