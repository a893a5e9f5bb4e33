import assert from "node:assert/strict";
import { test } from "node:test";
import type { Infohash } from "../../src/base/ids.ts";
import type { SwarmFigures, SwarmInput, SwarmOutput } from "../../src/protocol/swarm/contract.ts";
import type { Net } from "../../src/runtime/contract.ts";
import { ConnectionCount } from "../../src/transfer/connection-count.ts";
import { type DrivenSwarm, Driver, type DriverHooks } from "../../src/transfer/driver.ts";
import { FakeClock } from "../engine/fake-clock.ts";
import { keepingLog } from "../engine/parts.ts";

const noNet: Net = {
  listen: () => Promise.reject(new Error("no listening here")),
  connect: () => assert.fail("unexpected connection"),
} as unknown as Net;

/** A swarm that records its inputs and fails if it is called during a call. */
class ScriptedSwarm implements DrivenSwarm {
  readonly inputs: string[] = [];
  readonly outputs: SwarmOutput[] = [];
  during: ((input: SwarmInput) => void) | undefined;
  #isBusy = false;

  handle(input: SwarmInput): void {
    assert.equal(this.#isBusy, false, `${input.kind} came in the middle of another input`);
    this.#isBusy = true;
    this.inputs.push(input.kind);
    this.during?.(input);
    this.#isBusy = false;
  }

  wake(): void {}
  poll = () => this.outputs.shift();
  nextWake = () => undefined;
  figures = () => ({}) as SwarmFigures;
}

function drive(swarm: DrivenSwarm, hooks: Partial<DriverHooks> = {}): Driver {
  return new Driver({
    swarm,
    infohash: "ab".repeat(20) as Infohash,
    clock: new FakeClock(),
    net: noNet,
    announcer: {
      announce: () => Promise.resolve({ ok: false, reason: "none" }),
      scrape: () => Promise.resolve(undefined),
    },
    hooks: { piece() {}, block: () => undefined, metadata() {}, failed() {}, banned() {}, ...hooks },
    connections: new ConnectionCount(10),
    log: keepingLog(),
  });
}

test("Driver.input: an input that the swarm causes by taking a buffer is queued", () => {
  const swarm = new ScriptedSwarm();
  const driver = drive(swarm);
  swarm.during = ({ kind }) => {
    // The store drops a piece for the buffer that the swarm takes, and reports it at once.
    if (kind === "want") driver.input({ kind: "dropped", piece: 1 });
  };
  driver.input({ kind: "want", reader: 1, range: { start: 0, end: 1 }, urgentBytes: 0 });
  assert.deepEqual(swarm.inputs, ["want", "dropped"]);
});

test("Driver.input: an input caused by an output is handled after it, with its own outputs", () => {
  const swarm = new ScriptedSwarm();
  const pieces: number[] = [];
  const driver = drive(swarm, {
    piece: (piece) => {
      pieces.push(piece);
      if (piece === 1) driver.input({ kind: "buffers" });
    },
  });
  swarm.during = ({ kind }) => {
    const made = kind === "buffers" ? [3] : [1, 2];
    for (const piece of made) swarm.outputs.push({ kind: "piece", piece, bytes: new Uint8Array(1) });
  };
  driver.input({ kind: "dropped", piece: 9 });
  assert.deepEqual(pieces, [1, 2, 3]);
  assert.deepEqual(swarm.inputs, ["dropped", "buffers"]);
});

test("Driver: the block of a read output names its request, synchronous or not", async () => {
  const swarm = new ScriptedSwarm();
  const bytes = new Uint8Array(7);
  const driver = drive(swarm, { block: (piece) => (piece === 1 ? bytes : Promise.resolve(undefined)) });
  const inputs: SwarmInput[] = [];
  swarm.during = (input) => inputs.push(input);
  const read = { kind: "read", connection: 5, begin: 0, length: 7 } as const;
  swarm.outputs.push({ ...read, piece: 1, isForHashes: true }, { ...read, piece: 2 });
  driver.start();
  await undefined;
  await undefined;
  assert.deepEqual(inputs, [
    { kind: "block", connection: 5, piece: 1, begin: 0, bytes, isForHashes: true },
    { kind: "block", connection: 5, piece: 2, begin: 0, bytes: undefined },
  ]);
});
