import assert from "node:assert/strict";
import { test } from "node:test";
import { type Random, randomBelow, seededRandom } from "../../../src/base/random.ts";
import { chunkMessage, headerMessage, type Made, STRIPES, type Twist, Victim } from "./attacks.ts";

const LIES = 100_000;

/** How one kind of lie is told. */
interface Attack {
  /** What one liar says about the piece that is due, in order. */
  readonly lies: (made: Made, victim: Victim, random: Random) => Uint8Array[];
  /** So many of its lies one liar tells, whether it is heard or not. */
  readonly perLiar: number;
  /** The header of the piece is known when it lies about its chunks. */
  readonly isAfterHeader?: boolean;
  /** The first lie is a proof. */
  readonly isProof: boolean;
}

/** Tells 10^5 lies about the pieces that follow, each round about another one, while the stream goes on. */
function attack({ lies, perLiar, isAfterHeader = false, isProof }: Attack): Victim {
  const victim = new Victim();
  const random = seededRandom(7);
  for (let i = 0; i < 10; i++) victim.play();
  let told = 0;
  let cutOff = 0;
  let liars = 0;
  while (told < LIES) {
    const versions = lies(victim.forge.make({}), victim, random);
    const made = victim.forge.next();
    if (isAfterHeader) victim.hear(victim.honest, made.headerMessage);
    for (let i = 0; i < 8 && told < LIES; i++) {
      const liar = victim.liar();
      liars++;
      for (let n = 0; n < perLiar && told < LIES; n++) {
        const stays = victim.hear(liar, versions[(i + n) % versions.length]!);
        told++;
        if (!stays && n === 0 && isProof) cutOff++;
      }
      if (!isProof && !victim.isConnected(liar)) cutOff++;
      victim.leave(liar);
    }
    victim.play(made);
  }
  assert.equal(told, LIES);
  // The last one may not have come to the end of its list.
  assert.ok(cutOff >= liars - 1, `${cutOff} of ${liars} liars cut off`);
  return victim;
}

/** The stream went on as if nothing were, and nothing else came out or went to others. */
function isUnharmed(victim: Victim): void {
  const { played, wrong, passedOn } = victim;
  assert.equal(wrong, 0);
  assert.deepEqual(
    played,
    played.map((_, i) => played[0]! + i),
  );
  assert.equal(played.at(-1), victim.forge.seq - 1);
  assert.equal(victim.swarm.figures(victim.now).skippedPieces, 0);
  assert.ok(victim.isConnected(victim.honest) && victim.isConnected(victim.child));
  // Each piece once to the one child, four chunks and their header.
  assert.ok(passedOn <= (STRIPES + 1) * played.length, `${passedOn} messages for ${played.length} pieces`);
  assert.ok(passedOn >= STRIPES * (played.length - 2), `${passedOn} messages for ${played.length} pieces`);
}

function flipped(bytes: Uint8Array, at: number): Uint8Array {
  const copy = bytes.slice();
  copy[at]! ^= 1;
  return copy;
}

/** Headers that claim other things than the source signed; all of them can be read. */
function forgedHeaders(made: Made, random: Random): Uint8Array[] {
  const { bytes } = made.header;
  const hashes = Array.from({ length: 24 }, () => flipped(bytes, 60 + randomBelow(random, 20 * STRIPES)));
  const signatures = Array.from({ length: 24 }, () =>
    flipped(bytes, bytes.length - 64 + randomBelow(random, 64)),
  );
  const chain = Array.from({ length: 8 }, () => flipped(bytes, 40 + randomBelow(random, 20)));
  return [...hashes, ...signatures, ...chain].map(headerMessage);
}

test("LiveSwarm takes none of 10^5 forged headers, checks one of each liar, and cuts each off at it", () => {
  const victim = attack({
    lies: (made, _, random) => forgedHeaders(made, random),
    perLiar: 25,
    isProof: true,
  });
  isUnharmed(victim);
  assert.ok(victim.verifications <= LIES / 25 + victim.played.length + 10, `${victim.verifications}`);
  assert.equal(victim.forks, 0);
});

test("LiveSwarm takes none of 10^5 forged chunks, and cuts each liar off at the first", () => {
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

test("LiveSwarm takes none of 10^5 forged chunks that come before their header", () => {
  const victim = new Victim();
  const random = seededRandom(3);
  for (let i = 0; i < 10; i++) victim.play();
  for (let told = 0; told < LIES; ) {
    const made = victim.forge.next();
    const liars = Array.from({ length: 4 }, () => victim.liar());
    for (const liar of liars) {
      for (let n = 0; n < 100; n++, told++) {
        const stripe = randomBelow(random, STRIPES);
        const ahead = { ...made.header.value, seq: made.header.value.seq + randomBelow(random, 4) };
        victim.hear(liar, chunkMessage(ahead, stripe, flipped(made.chunks[stripe]!, 5)));
      }
    }
    victim.play(made);
    // The header is there now, and with it the proof.
    assert.ok(
      liars.every((liar) => !victim.isConnected(liar)),
      "all are cut off",
    );
  }
  isUnharmed(victim);
});

test("LiveSwarm plays and passes on nothing of 10^5 replays, and cuts off who goes on with them", () => {
  const old: Made[] = [];
  const victim = attack({
    lies: (made) => {
      old.push(made);
      if (old.length > 40) old.shift();
      // Known ones, and ones from before all that is kept.
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

test("LiveSwarm takes none of 10^5 chunks in the place of others, and cuts each liar off at the first", () => {
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

test("LiveSwarm plays pieces in order, whatever the order in which their parts come", () => {
  const victim = new Victim();
  const random = seededRandom(5);
  for (let round = 0; round < 500; round++) {
    const made = Array.from({ length: 8 }, () => victim.forge.next());
    const parts = made.flatMap(({ headerMessage: head, chunkMessages }) => [head, ...chunkMessages]);
    for (let i = parts.length - 1; i > 0; i--) {
      const j = randomBelow(random, i + 1);
      [parts[i], parts[j]] = [parts[j]!, parts[i]!];
    }
    for (const part of parts) victim.hear(victim.honest, part);
    victim.play(made.at(-1));
    victim.pass(700);
  }
  isUnharmed(victim);
});

test("LiveSwarm takes none of 10^5 pieces from the future, though the source signed them, and checks none of them", () => {
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

test("LiveSwarm takes none of 10^5 headers of another stream with the same key, and cuts each liar off at the first", () => {
  const victim = attack({
    lies: (_, { forge }) =>
      [0x47, 0x46, 0x45].map((mark) => forge.make({ isForeign: true, mark }).headerMessage),
    perLiar: 25,
    isProof: true,
  });
  isUnharmed(victim);
});

test("LiveSwarm and its decoder take none of 10^5 truncated messages, and cut each liar off at the first", () => {
  const victim = attack({
    lies: ({ headerMessage: head, chunkMessages }, _, random) =>
      Array.from({ length: 64 }, (__, i) => {
        const whole = i % 2 === 0 ? head : chunkMessages[i % STRIPES]!;
        // A chunk keeps one byte at least, or it would be no message at all.
        const least = i % 2 === 0 ? 1 : 15;
        return whole.subarray(0, least + randomBelow(random, whole.length - least));
      }),
    perLiar: 50,
    isAfterHeader: true,
    isProof: true,
  });
  isUnharmed(victim);
});

test("LiveSwarm keeps the first of two versions that the key has signed: 10^5 times nothing of the other comes out", () => {
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

test("LiveSwarm keeps the first of two versions of which the other begins a chain of its own", () => {
  const victim = new Victim();
  for (let i = 0; i < 10; i++) victim.play();
  const liar = victim.liar();
  for (let i = 0; i < 20; i++) {
    // It follows a piece that we do not have: not the one before it.
    const other = victim.forge.make({ mark: 0x46, header: { previousHash: new Uint8Array(20).fill(3) } });
    victim.hear(liar, other.headerMessage);
    victim.play();
  }
  isUnharmed(victim);
  assert.equal(victim.forks, 20);
  assert.ok(victim.isConnected(liar), "it is not at fault: it was told so");
});
