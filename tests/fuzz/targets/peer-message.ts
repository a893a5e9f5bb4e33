import { assert } from "../../../src/base/assert.ts";
import { DecodeError } from "../../../src/base/errors.ts";
import { PeerMessageDecoder, type PeerMessageHandler } from "../../../src/wire/peer/peer-message.ts";
import { PeerMessageWriter } from "../../../src/wire/peer/peer-message-writer.ts";
import { makeContent, ScriptedSwarm } from "../../protocol/swarm/scripted.ts";
import type { FuzzTarget } from "../contract.ts";

const LIMITS = { maxBitfieldBytes: 64, maxExtendedBytes: 4096, maxBlockBytes: 20_000 };

function messages(...writes: ((writer: PeerMessageWriter) => void)[]): Uint8Array {
  const writer = new PeerMessageWriter();
  for (const write of writes) write(writer);
  return writer.take() ?? new Uint8Array(0);
}

const CORPUS = [
  messages((to) => to.keepAlive()),
  messages(
    (to) => to.haveAll(),
    (to) => to.unchoke(),
    (to) => to.block(0, 0, new Uint8Array(100)),
  ),
  messages(
    (to) => to.bitfield(Uint8Array.of(0xf0)),
    (to) => to.have(2),
    (to) => to.interested(),
    (to) => to.request(0, 0, 16_384),
    (to) => to.cancel(0, 0, 16_384),
  ),
  messages(
    (to) => to.haveNone(),
    (to) => to.allowedFast(1),
    (to) => to.suggest(1),
    (to) => to.reject(0, 0, 16_384),
    (to) => to.choke(),
    (to) => to.port(1),
    (to) => to.notInterested(),
  ),
  messages(
    (to) => to.block(0, 0, new Uint8Array(16_384)),
    (to) => to.block(0, 16_384, new Uint8Array(16_384)),
  ),
  messages((to) => to.extended(0, new TextEncoder().encode("d1:md11:ut_metadatai1e6:ut_pexi2eee"))),
];

/** Records messages, so that two ways of feeding the same bytes can be compared. */
class Summer implements PeerMessageHandler {
  text = "";
  keepAlive = () => this.#add("k");
  choke = () => this.#add("c");
  unchoke = () => this.#add("u");
  interested = () => this.#add("i");
  notInterested = () => this.#add("n");
  have = (piece: number) => this.#add("h", piece);
  bitfield = (bits: Uint8Array) => this.#add("b", ...bits);
  request = (...of: number[]) => this.#add("r", ...of);
  cancel = (...of: number[]) => this.#add("x", ...of);
  reject = (...of: number[]) => this.#add("j", ...of);
  port = (port: number) => this.#add("p", port);
  suggest = (piece: number) => this.#add("s", piece);
  haveAll = () => this.#add("A");
  haveNone = () => this.#add("N");
  allowedFast = (piece: number) => this.#add("f", piece);
  extended = (id: number, payload: Uint8Array) => this.#add("e", id, payload.length);
  hash = (id: number, payload: Uint8Array) => this.#add("m", id, payload.length);
  block = () => undefined;
  blockDone = (...of: number[]) => this.#add("B", ...of);
  #add(kind: string, ...of: number[]): void {
    this.text += `${kind}${of.join(",")};`;
  }
}

/** All messages, and whether the bytes were refused. */
function hear(bytes: Uint8Array, step: number): { text: string; fault: unknown } {
  const summer = new Summer();
  const decoder = new PeerMessageDecoder(summer, LIMITS);
  try {
    for (let at = 0; at < bytes.length; at += step) decoder.feed(bytes.subarray(at, at + step));
    return { text: summer.text, fault: undefined };
  } catch (fault) {
    return { text: summer.text, fault };
  }
}

const decoder: FuzzTarget = {
  name: "peer-message",
  corpus: () => CORPUS,
  maxBytes: 4096,
  run(bytes) {
    const whole = hear(bytes, Math.max(1, bytes.length));
    const parts = hear(bytes, 7);
    assert(whole.text === parts.text, "where reads are cut must not matter");
    assert((whole.fault === undefined) === (parts.fault === undefined), "a fault must not depend on reads");
    if (whole.fault !== undefined) throw whole.fault;
    return whole.text;
  },
};

const content = makeContent(4, 2);

const swarm: FuzzTarget = {
  name: "swarm-peer",
  corpus: () => CORPUS,
  maxBytes: 8192,
  run(bytes) {
    const it = new ScriptedSwarm(content, { held: [3] });
    const good = it.peer().seed();
    const hostile = it.peer();
    it.want(0, content.bytes.length, content.layout.pieceLength);
    hostile.raw(bytes);
    it.pass(300);
    for (let i = 0; i < 6; i++) good.answer();
    assert(good.closed === undefined, "a hostile peer must not cost another its connection");
    // By then requests to the hostile peer have timed out, and its pieces that are not urgent are released.
    it.pass(10_000);
    for (let i = 0; i < 6; i++) good.answer();
    assert(it.pieces.length >= 3, "a hostile peer must not keep pieces from coming");
    if (hostile.closed !== undefined) throw new DecodeError("swarm", 0, hostile.closed);
  },
};

export const targets = [decoder, swarm];
