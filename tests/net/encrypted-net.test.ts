import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { test } from "node:test";
import { concatBytes, latin1Text } from "../../src/base/bytes.ts";
import { type Infohash, infohashOf } from "../../src/base/ids.ts";
import type { PeerNet, ReachSettings } from "../../src/net/contract.ts";
import { encryptedNet } from "../../src/net/encrypted-net.ts";
import type { TcpHandlers, TcpSocket } from "../../src/runtime/contract.ts";
import { encodeHandshake, isHandshakePrefix } from "../../src/wire/peer/handshake.ts";
import { FakeClock } from "../engine/fake-clock.ts";
import { keepingLog } from "../engine/parts.ts";
import { INFOHASH, sha1 } from "../protocol/mse/handshake-pair.ts";
import { MemoryNet } from "./memory-net.ts";

type Mode = ReachSettings["encryption"];

const PATTERN = Uint8Array.from({ length: 70_000 }, (_, i) => i * 7);
const ADDRESS = { host: "127.0.0.1", port: 7 };
const HAVE = infohashOf(INFOHASH);
const greetingOf = (infohash: Infohash) =>
  encodeHandshake({ infohash, peerId: new Uint8Array(20).fill(9), extensions: true, fast: true, dht: false });

/** A connection user that records events. */
class User implements TcpHandlers {
  socket: TcpSocket | undefined;
  readonly events: string[] = [];
  readonly parts: Uint8Array[] = [];
  /** Written when the connection opens, and when the handshake arrives. */
  greets: Uint8Array | undefined;
  answers: Uint8Array | undefined;

  opened(): void {
    this.events.push("opened");
    if (this.greets) this.socket!.write(this.greets.slice());
  }
  received(bytes: Uint8Array): void {
    this.parts.push(bytes.slice());
    if (!this.answers) return;
    // As the listener for peers does: it waits for a greeting, and closes where something else comes.
    if (!isHandshakePrefix(this.receivedBytes.subarray(0, 68))) this.socket!.close();
    else if (this.receivedBytes.length >= 68) {
      this.socket!.write(this.answers.slice());
      this.answers = undefined;
    }
  }
  drained(): void {}
  closed(): void {
    this.events.push("closed");
  }
  get receivedBytes(): Uint8Array {
    return concatBytes(this.parts);
  }
}

/** Two engines on one network, each with its mode. */
async function bench(calls: Mode, answers: Mode, wanted = HAVE) {
  const net = new MemoryNet();
  const clock = new FakeClock();
  const log = keepingLog();
  const runtime = { clock, sha1, randomBytes: (length: number) => new Uint8Array(randomBytes(length)) };
  const made = (mode: Mode): PeerNet => encryptedNet(net, { runtime, mode, log, infohashes: () => [HAVE] });
  const called: User[] = [];
  await made(answers).listen(ADDRESS, (socket) => {
    const user = new User();
    user.socket = socket;
    user.answers = greetingOf(HAVE);
    called.push(user);
    return user;
  });
  const caller = made(calls);
  const call = (greets: Uint8Array = greetingOf(wanted), prefersEncryption = false) => {
    const user = new User();
    user.greets = greets;
    user.socket = caller.connect(ADDRESS, user, { timeoutMs: 1000, prefersEncryption });
    net.settle();
    return user;
  };
  return { net, clock, called, call };
}

/** Returns true if the sent bytes contain plain text. */
function isClear(wire: readonly Uint8Array[]): boolean {
  return latin1Text(concatBytes(wire)).includes("BitTorrent protocol");
}

test("encryptedNet: all pairs of modes connect in plain text, encrypted, or not at all", async () => {
  const modes: readonly Mode[] = ["off", "allow", "prefer", "require"];
  const isHidden = (calls: Mode, answers: Mode): boolean | undefined => {
    if (calls === "off") return answers === "require" ? undefined : false;
    if (answers === "off") return calls === "require" ? undefined : false;
    if (calls === "allow") return answers === "require";
    return true;
  };
  for (const calls of modes) {
    for (const answers of modes) {
      const name = `${calls} calls ${answers}`;
      const { net, call, called } = await bench(calls, answers);
      const user = call();
      const expected = isHidden(calls, answers);
      if (expected === undefined) {
        assert.deepEqual(user.events, ["opened", "closed"], name);
        assert.equal(user.receivedBytes.length, 0, name);
        continue;
      }
      assert.deepEqual(user.events, ["opened"], name);
      const other = called.at(-1)!;
      assert.deepEqual(other.receivedBytes, greetingOf(HAVE), name);
      assert.deepEqual(user.receivedBytes, greetingOf(HAVE), name);
      assert.equal(isClear(net.calls.at(-1)!.wire), !expected, name);
      // The rest of the talk, in both directions and parts of any size.
      for (const partBytes of [1, 50, 100_000]) {
        net.partBytes = partBytes;
        const long = partBytes === 1 ? PATTERN.slice(0, 500) : PATTERN;
        user.parts.length = other.parts.length = 0;
        user.socket!.write(long.slice());
        other.socket!.write(long.slice());
        net.settle();
        assert.deepEqual(other.receivedBytes, long, name);
        assert.deepEqual(user.receivedBytes, long, name);
      }
      const isRc4 = expected && (calls === "require" || answers === "require" || answers === "prefer");
      const written = concatBytes(net.calls.at(-1)!.wire.slice(-1));
      assert.equal(written.join() !== PATTERN.join(), isRc4, name);
      other.socket!.close();
      net.settle();
      assert.deepEqual(user.events, ["opened", "closed"], name);
    }
  }
});

test("encryptedNet: a connection that prefers encryption gets it from each peer that supports it", async () => {
  const modes: readonly Mode[] = ["off", "allow", "prefer", "require"];
  for (const calls of modes) {
    for (const answers of modes) {
      const name = `${calls} calls ${answers}`;
      const { net, call, called } = await bench(calls, answers);
      const user = call(greetingOf(HAVE), true);
      const isAllowed =
        !(calls === "off" && answers === "require") && !(calls === "require" && answers === "off");
      assert.deepEqual(user.receivedBytes.length > 0, isAllowed, name);
      if (!isAllowed) continue;
      user.socket!.write(PATTERN.slice());
      net.settle();
      assert.deepEqual(called.at(-1)!.receivedBytes.subarray(68), PATTERN, name);
      const written = concatBytes(net.calls.at(-1)!.wire.slice(-1));
      assert.equal(written.join() !== PATTERN.join(), calls !== "off" && answers !== "off", name);
    }
  }
});

test("encryptedNet: delayed writes and bytes directly after the handshake arrive in order", async () => {
  for (const mode of ["allow", "prefer", "require"] as const) {
    const { net, call, called } = await bench(mode, "require");
    const user = call();
    user.socket!.write(Uint8Array.of(1, 2, 3));
    net.settle();
    assert.deepEqual(called.at(-1)!.receivedBytes.subarray(68), Uint8Array.of(1, 2, 3), mode);
    // Even what is written together with the greeting.
    const eager = call(concatBytes([greetingOf(HAVE), Uint8Array.of(4, 5, 6, 7)]));
    assert.deepEqual(called.at(-1)!.receivedBytes.subarray(68), Uint8Array.of(4, 5, 6, 7), mode);
    assert.deepEqual(eager.events, ["opened"], mode);
  }
});

test("encryptedNet: the next connection to a peer starts in the mode that it responded in", async () => {
  const { net, call } = await bench("allow", "require");
  call();
  assert.equal(net.calls.length, 2);
  const user = call();
  assert.equal(net.calls.length, 3);
  assert.deepEqual(user.receivedBytes, greetingOf(HAVE));
});

test("encryptedNet: content unknown to the peer ends the connection after two attempts", async () => {
  for (const mode of ["allow", "prefer", "require"] as const) {
    const { net, call, called } = await bench(mode, "require", "cd".repeat(20) as Infohash);
    const user = call();
    assert.deepEqual(user.events, ["opened", "closed"], mode);
    assert.equal(net.calls.length, mode === "require" ? 1 : 2);
    assert.ok(called.every(({ receivedBytes }) => receivedBytes.length === 0));
  }
});

test("encryptedNet: falls back to plain text in time if a peer without MSE waits for more bytes", async () => {
  const net = new MemoryNet();
  const clock = new FakeClock();
  const runtime = { clock, sha1, randomBytes: (length: number) => new Uint8Array(randomBytes(length)) };
  const receivedBytes: Uint8Array[] = [];
  await net.listen(ADDRESS, (socket) => ({
    received(bytes) {
      receivedBytes.push(bytes.slice());
      if (isHandshakePrefix(receivedBytes[0]!)) socket.write(greetingOf(HAVE));
    },
    drained() {},
    closed: () => void receivedBytes.splice(0),
  }));
  const prefers = encryptedNet(net, { runtime, mode: "prefer", log: keepingLog(), infohashes: () => [HAVE] });
  const user = new User();
  user.greets = greetingOf(HAVE);
  user.socket = prefers.connect(ADDRESS, user, { timeoutMs: 1000 });
  net.settle();
  assert.equal(user.receivedBytes.length, 0);
  await clock.advance(4_000);
  net.settle();
  assert.deepEqual(user.receivedBytes, greetingOf(HAVE));
  assert.deepEqual(user.events, ["opened"]);
  assert.equal(clock.waiting, 0, "a timer is left behind");
});

test("encryptedNet: does not retry a connection that failed to open or was closed by the caller", async () => {
  const { net, call } = await bench("allow", "require");
  const nowhere = new User();
  const runtime = { clock: new FakeClock(), sha1, randomBytes: () => new Uint8Array(96) };
  const other = encryptedNet(net, { runtime, mode: "allow", log: keepingLog(), infohashes: () => [] });
  other.connect({ host: "127.0.0.1", port: 8 }, nowhere, { timeoutMs: 1 });
  net.settle();
  assert.deepEqual(nowhere.events, ["closed"]);
  assert.equal(net.calls.length, 1);
  const user = call();
  user.socket!.close();
  net.settle();
  assert.deepEqual(user.events, ["opened", "closed"]);
  assert.equal(net.calls.length, 3);
  // Nor one that its user ends before the peer has answered.
  const hasty = new User();
  hasty.opened = () => hasty.socket!.close();
  hasty.socket = other.connect(ADDRESS, hasty, { timeoutMs: 1 });
  net.settle();
  assert.deepEqual(hasty.events, ["closed"]);
  assert.equal(net.calls.length, 4);
});

test("encryptedNet: limits handshakes per host; other hosts are unaffected", async () => {
  const net = new MemoryNet();
  const clock = new FakeClock();
  let computed = 0;
  const runtime = {
    clock,
    sha1,
    randomBytes: (length: number) => {
      if (length === 20) computed++;
      return new Uint8Array(randomBytes(length));
    },
  };
  const lets = encryptedNet(net, { runtime, mode: "require", log: keepingLog(), infohashes: () => [HAVE] });
  await lets.listen(ADDRESS, () => new User());
  const flood = (count: number) => {
    for (let i = 0; i < count; i++) net.connect(ADDRESS, new User()).write(new Uint8Array(96).fill(0x55));
    net.settle();
  };
  flood(1_000);
  assert.ok(computed >= 10 && computed <= 30, `${computed} answers`);
  const before = computed;
  await clock.advance(10_000);
  flood(1_000);
  assert.ok(computed > before && computed - before <= 30, `${computed - before} answers`);
});
