import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { fromHex, toHex } from "../../src/base/bytes.ts";
import type { Infohash } from "../../src/base/ids.ts";
import { isValidPublicKey } from "../../src/base/signature.ts";
import type { SignedHeader } from "../../src/protocol/live/messages.ts";
import { ed25519Verifier, sha256 } from "../../src/runtime/crypto.ts";
import { viewBencode } from "../../src/wire/bencode-view.ts";
import { ChunkAssembler } from "../../src/wire/live/fragments.ts";
import { decodeHeader } from "../../src/wire/live/header.ts";
import { parseLiveInfo } from "../../src/wire/live/info.ts";
import { decodeLiveMessage } from "../../src/wire/live/message.ts";
import { provedRole } from "../../src/wire/live/role-proof.ts";
import { decodeSuccessor } from "../../src/wire/live/successor.ts";
import { parseLiveTransportFile } from "../../src/wire/live/transport-file.ts";
import { isChunkOf, isSignedHeader, liveHash } from "../../src/wire/live/trust.ts";
import { readVariants } from "../../src/wire/live/variants.ts";
import { decodeExtensionHandshake } from "../../src/wire/peer/extension-handshake.ts";
import { decodeMetadataMessage } from "../../src/wire/peer/metadata-message.ts";
import { ABOUT, chunk, header, Scripted, STRIPES } from "../protocol/live/scripted.ts";
import { chainProblem } from "./header-chain.ts";
import { allCases } from "./live-cases.ts";
import { INFO, INFOHASH, PROOFS, VERIFY } from "./live-vectors.ts";
import { sha1 } from "./make-torrent.ts";

interface Decision {
  readonly what: string;
  readonly bytes: string;
  readonly isValid: boolean;
}
interface Cases {
  readonly signatures: readonly (Decision & {
    readonly key: string;
    readonly message: string;
    readonly signature: string;
  })[];
  readonly keys: readonly { readonly what: string; readonly key: string; readonly isValid: boolean }[];
  readonly headers: readonly Decision[];
  readonly files: readonly Decision[];
  readonly layouts: readonly {
    readonly infoBytes: string;
    readonly infohash: Infohash;
    readonly length: number;
    readonly headerBytes: string;
    readonly chunkLengths: readonly number[];
    readonly messages: readonly { readonly head: string; readonly bytes: number }[];
  }[];
  readonly chain: {
    readonly headers: Readonly<Record<string, string>>;
    readonly cases: readonly {
      readonly known: readonly string[];
      readonly header: string;
      readonly is: string;
    }[];
  };
  readonly subscriptions: readonly {
    readonly what: string;
    readonly sub: string;
    readonly answer: { readonly granted?: number; readonly reason?: number };
  }[];
  readonly metadata: Readonly<Record<"infohash" | "withoutInfo" | "withInfo" | "request" | "data", string>>;
  readonly proofs: readonly Decision[];
  readonly successors: readonly Decision[];
  readonly variants: readonly {
    readonly what: string;
    readonly bytes: string;
    readonly variants: readonly object[];
  }[];
}

const FILE = new URL("../fixtures/live/cases.json", import.meta.url);
const CASES = JSON.parse(readFileSync(FILE, "utf8")) as Cases;
const bytesOf = (hex: string) => fromHex(hex)!;

/** Returns true unless `action` throws. */
function accepts(action: () => unknown): boolean {
  try {
    action();
    return true;
  } catch {
    return false;
  }
}

function decide<T extends { readonly what: string; readonly isValid: boolean }>(
  cases: readonly T[],
  accepted: (each: T) => boolean,
): void {
  for (const each of cases) assert.equal(accepted(each), each.isValid, each.what);
}

test("the encoders reproduce the cases", () => assert.deepEqual(CASES, allCases()));

test("ed25519Verifier decides as the live protocol says, on every runtime", () => {
  decide(CASES.signatures, ({ key, message, signature }) =>
    ed25519Verifier(bytesOf(key))(bytesOf(message), bytesOf(signature)),
  );
  decide(CASES.keys, ({ key }) => isValidPublicKey(bytesOf(key)));
});

test("decodeHeader and isSignedHeader refuse one header for each rule, and no other", () => {
  decide(CASES.headers, ({ bytes }) =>
    accepts(() => {
      decodeHeader(bytesOf(bytes), INFO);
      assert.ok(isSignedHeader(bytesOf(bytes), INFOHASH, VERIFY));
    }),
  );
});

test("parseLiveTransportFile accepts and refuses what the cases say", () => {
  decide(CASES.files, ({ bytes }) =>
    accepts(() => parseLiveTransportFile(bytesOf(bytes), sha1, ed25519Verifier)),
  );
});

test("readVariants reads of each list of qualities what the cases say", () => {
  for (const { what, bytes, variants } of CASES.variants) {
    const read = readVariants(viewBencode(bytesOf(bytes))).map(
      ({ infohash, bytesPerSecond, width, height, codecs }) => ({
        ...(infohash !== undefined && { ih: infohash }),
        bps: bytesPerSecond,
        ...(width !== undefined && { w: width, h: height }),
        ...(codecs.length > 0 && { cd: codecs.join(",") }),
      }),
    );
    assert.deepEqual(read, variants, what);
  }
});

test("pieces of streams with 8 and 16 stripes have the headers and messages of the cases", () => {
  for (const { infoBytes, infohash, length, headerBytes, chunkLengths, messages } of CASES.layouts) {
    const info = parseLiveInfo(bytesOf(infoBytes));
    const bytes = bytesOf(headerBytes);
    const decoded = decodeHeader(bytes, info);
    assert.ok(isSignedHeader(bytes, infohash, ed25519Verifier(info.publicKey)));
    const piece = Uint8Array.from({ length }, (_, i) => i % 251);
    const assembler = new ChunkAssembler(info);
    let sent = 0;
    const whole = messages.flatMap(({ head, bytes }) => {
      const part = piece.subarray(sent, sent + bytes);
      sent += bytes;
      const message = decodeLiveMessage(bytesOf(head + toHex(part)), info.stripeCount);
      assert.ok(message?.kind === "chunk");
      return assembler.take(message) ?? [];
    });
    assert.equal(sent, length);
    assert.deepEqual(
      whole.map((each) => each.bytes.length),
      chunkLengths.filter((each) => each > 0),
    );
    for (const { stripe, bytes } of whole) assert.ok(isChunkOf(decoded, stripe, bytes, sha256));
  }
});

test("LiveSwarm recognizes which headers of the cases contradict each other", () => {
  const signed = (name: string): SignedHeader => {
    const bytes = bytesOf(CASES.chain.headers[name]!);
    return { bytes, value: decodeHeader(bytes, INFO) };
  };
  for (const { known, header: name, is } of CASES.chain.cases) {
    const swarm = new Scripted({
      isSigned: ({ bytes }) => isSignedHeader(bytes, INFOHASH, VERIFY),
      hash: (bytes) => liveHash(bytes, sha256),
      unixMs: () => signed(name).value.timestampMs,
    });
    const peer = swarm.peer(signed(known[0]!));
    swarm.pass(200);
    for (const each of [...known.slice(1), name])
      swarm.receive(peer, { kind: "header", isAnswer: false, header: signed(each) });
    const what = `${known} and ${name}`;
    assert.equal(swarm.of("forked").length > 0, is === "contradicts", what);
    const last = signed(known.at(-1)!);
    const problem = chainProblem(last.bytes, last.value, signed(name).value, sha256);
    assert.equal(problem === undefined, is === "follows", what);
    swarm.pass(1_000);
    assert.equal(swarm.sent("window").at(-1)?.window.epoch, signed(name).value.epoch, what);
  }
});

test("a source answers the SUBs of the cases with the first piece that they say", () => {
  for (const { what, sub, answer } of CASES.subscriptions) {
    const source = new Scripted({ about: { ...ABOUT, role: "source", digest: 1 } });
    for (let seq = 1; seq <= 100; seq++) {
      const chunks = Array.from({ length: STRIPES }, (_, stripe) => chunk(seq, stripe).bytes);
      source.input({ kind: "produced", header: header(seq), chunks });
    }
    const peer = source.peer(undefined);
    const message = decodeLiveMessage(bytesOf(sub), STRIPES);
    assert.ok(message?.kind === "subscribe");
    source.receive(peer, message);
    assert.equal(source.sent("subscribed", peer)[0]?.startSeq, answer.granted, what);
    const reasons = source.sent("refused", peer).map(({ reason }) => reason);
    assert.deepEqual(reasons, answer.reason === undefined ? [] : ["no-content"], what);
    const first = answer.granted ?? 101;
    const sent = source.sent("chunk", peer).map(({ seq }) => seq);
    assert.equal(sent.length, STRIPES * Math.max(0, 101 - first), what);
    assert.ok(
      sent.every((seq) => seq >= first),
      what,
    );
  }
});

test("a peer that knows only the infohash receives the info dictionary", () => {
  const { infohash, withoutInfo, withInfo, request, data } = CASES.metadata;
  assert.equal(decodeExtensionHandshake(bytesOf(withoutInfo)).live, undefined);
  const introduced = decodeExtensionHandshake(bytesOf(withInfo));
  assert.equal(introduced.live?.role, "viewer");
  assert.deepEqual(decodeMetadataMessage(bytesOf(request)), { kind: "request", piece: 0 });
  const message = decodeMetadataMessage(bytesOf(data));
  assert.ok(message?.kind === "data");
  assert.equal(message.bytes.length, introduced.metadataBytes);
  assert.equal(toHex(sha1(message.bytes)), infohash);
  assert.ok(viewBencode(message.bytes).get("live")?.isDict);
});

test("changed proofs and successor records have no effect", () => {
  const { parties } = PROOFS[2]!;
  decide(CASES.proofs, ({ bytes }) =>
    Boolean(provedRole(bytesOf(bytes), parties, INFO.publicKey, ed25519Verifier, 1_790_000_000_000 - 1)),
  );
  decide(CASES.successors, ({ bytes }) => accepts(() => decodeSuccessor(bytesOf(bytes), INFOHASH, VERIFY)));
});
