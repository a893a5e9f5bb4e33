import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { test } from "node:test";
import type { PeerAddress } from "../../../src/base/address.ts";
import { latin1Bytes } from "../../../src/base/bytes.ts";
import { DecodeError } from "../../../src/base/errors.ts";
import { after, type Instant, instant } from "../../../src/base/time.ts";
import { IceAgent } from "../../../src/protocol/webrtc/ice-agent.ts";
import { decodeStun, encodeStun, peekStun, type StunMessage } from "../../../src/protocol/webrtc/stun.ts";

const sha1 = (bytes: Uint8Array) => new Uint8Array(createHash("sha1").update(bytes).digest());
const A: PeerAddress = { host: "192.0.2.1", port: 1000 };
const B: PeerAddress = { host: "192.0.2.2", port: 2000 };
const NOWHERE: PeerAddress = { host: "198.51.100.9", port: 9 };

function agent(name: "a" | "b", isControlling: boolean, mayUse: (to: PeerAddress) => boolean = () => true) {
  let count = 0;
  return new IceAgent({
    fragment: `frag${name}`,
    password: `password-of-the-agent-${name}`,
    isControlling,
    tieBreaker: new Uint8Array(8).fill(name === "a" ? 1 : 2),
    sha1,
    newTransaction: () => new Uint8Array(12).fill(++count, 1).fill(name === "a" ? 1 : 2, 0, 1),
    mayUse,
  });
}

const remote = (name: "a" | "b") => ({ fragment: `frag${name}`, password: `password-of-the-agent-${name}` });

/** Connects two agents; returns what they report. `reaches`: whether a packet arrives. */
function run(a: IceAgent, b: IceAgent, reaches: (to: PeerAddress) => boolean, forMs: number): string[] {
  const events: string[] = [];
  let now: Instant = instant(0);
  const until = after(now, forMs);
  const drain = (): boolean => {
    let isBusy = false;
    for (const [name, from, each] of [
      ["a", A, a],
      ["b", B, b],
    ] as const) {
      for (let output = each.poll(); output; output = each.poll()) {
        isBusy = true;
        if (output.kind === "selected") events.push(`${name} ${output.address.port}`);
        else if (output.kind === "failed") events.push(`${name} ${output.reason}`);
        else if (reaches(output.to) && output.to !== NOWHERE) {
          const to = output.to.port === A.port ? a : b;
          try {
            to.received(output.bytes, from, now);
          } catch (thrown) {
            // The second response to a repeated check.
            if (!(thrown instanceof DecodeError)) throw thrown;
          }
        }
      }
    }
    return isBusy;
  };
  for (;;) {
    while (drain());
    const next = Math.min(a.nextWake() ?? Number.POSITIVE_INFINITY, b.nextWake() ?? Number.POSITIVE_INFINITY);
    if (!Number.isFinite(next) || next > until) return events;
    now = instant(Math.max(now, next));
    a.wake(now);
    b.wake(now);
  }
}

test("ice: both sides select the address that responds", () => {
  const [a, b] = [agent("a", true), agent("b", false)];
  a.setRemote(remote("b"), [NOWHERE, B], instant(0));
  b.setRemote(remote("a"), [A], instant(0));
  const events = run(a, b, (to) => to.port !== NOWHERE.port, 120_000);
  assert.deepEqual(events.sort(), ["a 2000", "b 1000"]);
  assert.ok(a.isValid(B) && b.isValid(A));
});

test("ice: a browser that hides its addresses is found by its own checks", () => {
  const [a, b] = [agent("a", true), agent("b", false)];
  a.setRemote(remote("b"), [B], instant(0));
  b.setRemote(remote("a"), [], instant(0));
  assert.deepEqual(run(a, b, () => true, 10_000).sort(), ["a 2000", "b 1000"]);
});

test("ice: two sides that both want to control agree", () => {
  for (const role of [true, false]) {
    const [a, b] = [agent("a", role), agent("b", role)];
    a.setRemote(remote("b"), [B], instant(0));
    b.setRemote(remote("a"), [A], instant(0));
    assert.deepEqual(run(a, b, () => true, 10_000).sort(), ["a 2000", "b 1000"]);
  }
});

test("ice: without a response it fails; a selected peer that falls silent fails after 30 s", () => {
  const [a, b] = [agent("a", true), agent("b", false)];
  a.setRemote(remote("b"), [NOWHERE], instant(0));
  assert.deepEqual(
    run(a, b, () => false, 60_000),
    ["a no address of the peer responds"],
  );
  const [c, d] = [agent("a", true), agent("b", false)];
  c.setRemote(remote("b"), [B], instant(0));
  d.setRemote(remote("a"), [A], instant(0));
  let packets = 0;
  const events = run(c, d, () => ++packets < 20, 60_000);
  assert.ok(events.includes("a the peer no longer responds"), events.join());
});

test("ice: addresses that policy forbids are neither contacted nor answered", () => {
  const a = agent("a", true, ({ host }) => host !== B.host);
  const b = agent("b", false);
  a.setRemote(remote("b"), [B], instant(0));
  b.setRemote(remote("a"), [A], instant(0));
  const events = run(a, b, () => true, 60_000);
  assert.deepEqual(events.sort(), ["a no address of the peer responds", "b no address of the peer responds"]);
});

test("ice: requests without the password are refused", () => {
  const a = agent("a", true);
  const request: StunMessage = {
    kind: "request",
    transaction: new Uint8Array(12),
    username: "fraga:fragb",
    role: { isControlling: false, tieBreaker: new Uint8Array(8) },
  };
  for (const password of [undefined, "another"])
    assert.throws(() => a.received(encodeStun(request, password, sha1), B, instant(0)), DecodeError);
  assert.equal(a.poll(), undefined);
});

test("stun: the sample request of RFC 5769 2.1 verifies", () => {
  const hex =
    "000100582112a442b7e7a701bc34d686fa87dfae802200105354554e207465737420636c69656e74002400046e0001ff80290008932ff9b151263b36000600096576746a3a68367659202020000800149aeaa70cbfd8cb56781ef2b5b2d3f249c1b571a280280004e57a3bcf";
  const bytes = Uint8Array.from(hex.match(/../g)!, (pair) => Number.parseInt(pair, 16));
  const message = decodeStun(bytes, () => "VOkJxbRl1RmTxUk/WvJxBt", sha1);
  assert.equal(message.username, "evtj:h6vY");
  assert.equal(message.priority, 0x6e0001ff);
  assert.equal(message.role?.isControlling, false);
  bytes[40]! ^= 1;
  assert.throws(() => decodeStun(bytes, () => "VOkJxbRl1RmTxUk/WvJxBt", sha1), DecodeError);
});

test("stun: addresses of both families survive the encoding", () => {
  for (const host of ["192.0.2.1", "2001:db8::1"]) {
    const message = { kind: "success", transaction: latin1Bytes("0123456789ab") } as const;
    const bytes = encodeStun({ ...message, mapped: { host, port: 32_853 } }, "password", sha1);
    assert.deepEqual(peekStun(bytes).mapped, { host, port: 32_853 });
  }
});
