import assert from "node:assert/strict";
import { test } from "node:test";
import type { Random } from "../../../src/base/random.ts";
import { randomBelow } from "../../../src/base/random.ts";
import { isFastRun } from "../../parts/test-tiers.ts";
import { seededRandom } from "../../seeded-random.ts";
import { chunkMessage, headerMessage, type Made, STRIPES, type Twist, Victim } from "./attacks.ts";

const LIES = isFastRun ? 10_000 : 100_000;

/** How one kind of forgery is sent. */
interface Attack {
  /** The messages of one liar about the next piece, in order. */
  readonly lies: (made: Made, victim: Victim, random: Random) => Uint8Array[];
  /** Number of messages that one liar sends, connected or not. */
  readonly perLiar: number;
  /** The header of the piece is known when its chunks are forged. */
  readonly isAfterHeader?: boolean;
  /** The first forgery is proof. */
  readonly isProof: boolean;
}

/** Sends 10^5 forgeries about successive pieces while the stream continues. */
function attack({ lies, perLiar, isAfterHeader = false, isProof }: Attack): Victim {
  const victim = new Victim();
  const random = seededRandom(7);
  for (let i = 0; i < 10; i++) victim.play();
  let sent = 0;
  let cutOff = 0;
  let liars = 0;
  while (sent < LIES) {
    const versions = lies(victim.forge.make({}), victim, random);
    const made = victim.forge.next();
    if (isAfterHeader) victim.receive(victim.honest, made.headerMessage);
    for (let i = 0; i < 8 && sent < LIES; i++) {
      const liar = victim.liar();
      liars++;
      for (let n = 0; n < perLiar && sent < LIES; n++) {
        const stays = victim.receive(liar, versions[(i + n) % versions.length]!);
        sent++;
        if (!stays && n === 0 && isProof) cutOff++;
      }
      if (!isProof && !victim.isConnected(liar)) cutOff++;
      victim.leave(liar);
    }
    victim.play(made);
  }
  assert.equal(sent, LIES);
  // The last liar may not have sent all of its messages.
  assert.ok(cutOff >= liars - 1, `${cutOff} of ${liars} liars cut off`);
  return victim;
}

/** The stream continued, and nothing else was played or forwarded. */
function isUnharmed(victim: Victim): void {
  const { played, wrong, forwarded } = victim;
  assert.equal(wrong, 0);
  assert.deepEqual(
    played,
    played.map((_, i) => played[0]! + i),
  );
  assert.equal(played.at(-1), victim.forge.seq - 1);
  assert.equal(victim.swarm.figures(victim.now).skippedPieces, 0);
  assert.ok(victim.isConnected(victim.honest) && victim.isConnected(victim.child));
  // Each piece once to the one child, as four chunks and their header.
  assert.ok(forwarded <= (STRIPES + 1) * played.length, `${forwarded} messages for ${played.length} pieces`);
  assert.ok(forwarded >= STRIPES * (played.length - 2), `${forwarded} messages for ${played.length} pieces`);
}

function flipped(bytes: Uint8Array, at: number): Uint8Array {
  const copy = bytes.slice();
  copy[at]! ^= 1;
  return copy;
}

/** Headers that decode but differ from what the source signed. */
function forgedHeaders(made: Made, random: Random): Uint8Array[] {
  const { bytes } = made.header;
  const hashes = Array.from({ length: 24 }, () => flipped(bytes, 60 + randomBelow(random, 20 * STRIPES)));
  const signatures = Array.from({ length: 24 }, () =>
    flipped(bytes, bytes.length - 64 + randomBelow(random, 64)),
  );
  const chain = Array.from({ length: 8 }, () => flipped(bytes, 40 + randomBelow(random, 20)));
  return [...hashes, ...signatures, ...chain].map(headerMessage);
}

test("LiveSwarm rejects 10^5 forged headers, verifies one of each liar, and disconnects each liar at it", () => {
  const victim = attack({
    lies: (made, _, random) => forgedHeaders(made, random),
    perLiar: 25,
    isProof: true,
  });
  isUnharmed(victim);
  assert.ok(victim.verifications <= LIES / 25 + victim.played.length + 10, `${victim.verifications}`);
  assert.equal(victim.forks, 0);
});

test("LiveSwarm rejects 10^5 forged chunks, and disconnects each liar at the first", () => {
  const victim = attack({
    lies: (made, _, random) =>
      Array.from({ length: 64 }, (__, i) =>
        chunkMessage(
          made.header.value,
          i % STRIPES,
          flipped(made.chunks[i % STRIPES]!, randomBelow(random, 188)),
        ),
      ),
    perLiar: 50,
    isAfterHeader: true,
    isProof: true,
  });
  isUnharmed(victim);
});

test("LiveSwarm rejects 10^5 forged chunks that arrive before their header", () => {
  const victim = new Victim();
  const random = seededRandom(3);
  for (let i = 0; i < 10; i++) victim.play();
  for (let sent = 0; sent < LIES; ) {
    const made = victim.forge.next();
    const liars = Array.from({ length: 4 }, () => victim.liar());
    for (const liar of liars) {
      for (let n = 0; n < 100; n++, sent++) {
        const stripe = randomBelow(random, STRIPES);
        const ahead = { ...made.header.value, seq: made.header.value.seq + randomBelow(random, 4) };
        victim.receive(liar, chunkMessage(ahead, stripe, flipped(made.chunks[stripe]!, 5)));
      }
    }
    victim.play(made);
    // Now the header arrives, and with it the proof.
    assert.ok(
      liars.every((liar) => !victim.isConnected(liar)),
      "all are cut off",
    );
  }
  isUnharmed(victim);
});

test("LiveSwarm plays and forwards nothing of 10^5 replays, and disconnects peers that continue with them", () => {
  const old: Made[] = [];
  const victim = attack({
    lies: (made) => {
      old.push(made);
      if (old.length > 40) old.shift();
      // Known pieces, and pieces older than the window.
      return old
        .slice(0, -1)
        .flatMap(({ headerMessage: head, chunkMessages }) => [head, ...chunkMessages])
        .concat([headerMessage(old[0]!.header.bytes)]);
    },
    perLiar: 500,
    isProof: false,
  });
  isUnharmed(victim);
  assert.equal(victim.forks, 0);
});

test("LiveSwarm rejects 10^5 chunks sent in the place of others, and disconnects each liar at the first", () => {
  const victim = attack({
    lies: (made, { forge }) => {
      const value = made.header.value;
      const other = forge.make({ header: { seq: value.seq - 1 } });
      const swapped = made.chunks.map((_, stripe) =>
        chunkMessage(value, stripe, made.chunks[(stripe + 1) % STRIPES]!),
      );
      const differ = made.chunks.some((chunk, i) =>
        chunk.some((byte, at) => byte !== made.chunks[(i + 1) % STRIPES]![at]),
      );
      const before = other.chunks.map((_, stripe) =>
        chunkMessage(value, stripe, new Uint8Array(188).fill((value.seq - 1) & 255)),
      );
      return differ ? [...swapped, ...before] : before;
    },
    perLiar: 50,
    isAfterHeader: true,
    isProof: true,
  });
  isUnharmed(victim);
});

test("LiveSwarm plays pieces in order, whatever the order in which their chunks arrive", () => {
  const victim = new Victim();
  const random = seededRandom(5);
  for (let round = 0; round < 500; round++) {
    const made = Array.from({ length: 8 }, () => victim.forge.next());
    const parts = made.flatMap(({ headerMessage: head, chunkMessages }) => [head, ...chunkMessages]);
    for (let i = parts.length - 1; i > 0; i--) {
      const j = randomBelow(random, i + 1);
      [parts[i], parts[j]] = [parts[j]!, parts[i]!];
    }
    for (const part of parts) victim.receive(victim.honest, part);
    victim.play(made.at(-1));
    victim.pass(700);
  }
  isUnharmed(victim);
});

test("LiveSwarm rejects 10^5 signed pieces from the future without verifying them", () => {
  const victim = attack({
    lies: ({ header: { value } }, { forge }) => {
      const later = (ms: number): Twist => ({ header: { timestampMs: value.timestampMs + ms } });
      return [660_000, 3_600_000, 10 ** 10].map((ms) => forge.make(later(ms)).headerMessage);
    },
    perLiar: 250,
    isProof: false,
  });
  isUnharmed(victim);
  assert.ok(victim.verifications <= victim.played.length + 10, `${victim.verifications}`);
});

test("LiveSwarm rejects 10^5 headers of another stream with the same key, and disconnects each liar at the first", () => {
  const victim = attack({
    lies: (_, { forge }) =>
      [0x47, 0x46, 0x45].map((mark) => forge.make({ isForeign: true, mark }).headerMessage),
    perLiar: 25,
    isProof: true,
  });
  isUnharmed(victim);
});

test("LiveSwarm and its decoder reject 10^5 truncated messages, and disconnect each liar at the first", () => {
  const victim = attack({
    lies: ({ headerMessage: head, chunkMessages }, _, random) =>
      Array.from({ length: 64 }, (__, i) => {
        const whole = i % 2 === 0 ? head : chunkMessages[i % STRIPES]!;
        // A chunk keeps at least one byte; without one it would not be a message.
        const least = i % 2 === 0 ? 1 : 15;
        return whole.subarray(0, least + randomBelow(random, whole.length - least));
      }),
    perLiar: 50,
    isAfterHeader: true,
    isProof: true,
  });
  isUnharmed(victim);
});

test("LiveSwarm keeps the first of two versions that the key signed, and plays nothing of the other in 10^5 attempts", () => {
  const victim = attack({
    lies: (_, { forge }) =>
      [0x46, 0x45, 0x44].flatMap((mark) => {
        const other = forge.make({ mark });
        return [other.headerMessage, ...other.chunkMessages];
      }),
    perLiar: 500,
    isAfterHeader: true,
    isProof: false,
  });
  isUnharmed(victim);
  assert.ok(victim.forks > 0);
});

test("LiveSwarm keeps the first of two versions if the other starts a chain of its own", () => {
  const victim = new Victim();
  for (let i = 0; i < 10; i++) victim.play();
  const liar = victim.liar();
  for (let i = 0; i < 20; i++) {
    // It follows a piece that is not the one before it.
    const other = victim.forge.make({ mark: 0x46, header: { previousHash: new Uint8Array(20).fill(3) } });
    victim.receive(liar, other.headerMessage);
    victim.play();
  }
  isUnharmed(victim);
  assert.equal(victim.forks, 20);
  assert.ok(victim.isConnected(liar), "it is not at fault");
});
