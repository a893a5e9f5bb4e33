import { assert } from "../../base/assert.ts";
import { concatBytes, readU32, writeU16, writeU32 } from "../../base/bytes.ts";
import { DecodeError } from "../../base/errors.ts";
import {
  MSE_BOTH,
  MSE_MAX_PAD_BYTES,
  MSE_METHOD,
  MSE_VC_BYTES,
  type MseCiphers,
  type MseMethod,
  mseCiphers,
  req1Hash,
  req2Hash,
  req3Hash,
  xorBytes,
} from "../../wire/peer/mse.ts";
import {
  MSE_KEY_BYTES,
  MSE_PRIVATE_BYTES,
  type MseKeyPair,
  mseKeyPair,
  mseSecret,
} from "../../wire/peer/mse-keys.ts";
import type { MseDependencies, MseHandshake, MseOutcome } from "./contract.ts";
import { MseInbox } from "./inbox.ts";
import { randomPadding, readPaddingBytes } from "./padding.ts";
import { mseStream } from "./stream.ts";

/** Options of the initiating side. */
interface MseInitiatorOptions {
  /** 20 bytes. */
  readonly infohash: Uint8Array;
  /** Initial payload: the BEP 3 handshake, as common clients send it. At most 65535 bytes. */
  readonly initial: Uint8Array;
  /** Bit mask of the offered methods. */
  readonly offered: number;
}

/** The initiating side of MSE: sends its key; then the obfuscated infohash, the offer and the payload; then follows
 * the choice. */
export class MseInitiator implements MseHandshake {
  readonly #options: MseInitiatorOptions;
  readonly #dependencies: MseDependencies;
  readonly #keys: MseKeyPair;
  readonly #inbox = new MseInbox();
  readonly #padding = { left: MSE_MAX_PAD_BYTES };
  #stage: "key" | "mark" | "choice" | "padding" | "done" = "key";
  #output: Uint8Array | undefined;
  #ciphers: MseCiphers | undefined;
  /** The end mark of the padding: the verification constant, encrypted by the peer. */
  #mark = new Uint8Array(MSE_VC_BYTES);
  #method: MseMethod = MSE_METHOD.rc4;
  #paddingBytes = 0;

  constructor(options: MseInitiatorOptions, dependencies: MseDependencies) {
    assert((options.offered & MSE_BOTH) !== 0, "an MSE handshake must offer a method");
    this.#options = options;
    this.#dependencies = dependencies;
    this.#keys = mseKeyPair(dependencies.randomBytes(MSE_PRIVATE_BYTES));
    this.#output = concatBytes([this.#keys.publicKey, randomPadding(dependencies)]);
  }

  take(): Uint8Array | undefined {
    const output = this.#output;
    this.#output = undefined;
    return output;
  }

  receive(bytes: Uint8Array): MseOutcome | undefined {
    this.#inbox.add(bytes);
    if (this.#stage === "key" && !this.#readKey()) return undefined;
    if (this.#stage === "mark" && !this.#readMark()) return undefined;
    if (this.#stage === "choice" && !this.#readChoice()) return undefined;
    return this.#readPadding();
  }

  #readKey(): boolean {
    const theirs = this.#inbox.take(MSE_KEY_BYTES);
    if (!theirs) return false;
    const { infohash } = this.#options;
    const { sha1 } = this.#dependencies;
    const secret = mseSecret(this.#keys.privateKey, theirs);
    this.#ciphers = mseCiphers(secret, infohash, true, sha1);
    this.#ciphers.theirs.apply(this.#mark, this.#mark);
    this.#output = concatBytes([
      req1Hash(secret, sha1),
      xorBytes(req2Hash(infohash, sha1), req3Hash(secret, sha1)),
      this.#offer(this.#ciphers),
    ]);
    this.#stage = "mark";
    return true;
  }

  /** The encrypted part: verification constant, offer, padding and payload, the last two with their lengths. */
  #offer({ ours }: MseCiphers): Uint8Array {
    const { initial, offered } = this.#options;
    const padding = randomPadding(this.#dependencies);
    const at = MSE_VC_BYTES + 4;
    const offer = new Uint8Array(at + 2 + padding.length + 2 + initial.length);
    writeU32(offer, MSE_VC_BYTES, offered);
    writeU16(offer, at, padding.length);
    offer.set(padding, at + 2);
    writeU16(offer, at + 2 + padding.length, initial.length);
    offer.set(initial, at + 2 + padding.length + 2);
    ours.apply(offer, offer);
    return offer;
  }

  #readMark(): boolean {
    if (!this.#inbox.skipPast(this.#mark, this.#padding)) return false;
    this.#stage = "choice";
    return true;
  }

  #readChoice(): boolean {
    const head = this.#inbox.take(4 + 2);
    if (!head) return false;
    this.#ciphers!.theirs.apply(head, head);
    this.#method = chosen(readU32(head, 0), this.#options.offered);
    this.#paddingBytes = readPaddingBytes(head, 4);
    this.#stage = "padding";
    return true;
  }

  #readPadding(): MseOutcome | undefined {
    const padding = this.#stage === "padding" ? this.#inbox.take(this.#paddingBytes) : undefined;
    if (!padding) return undefined;
    this.#stage = "done";
    const ciphers = this.#ciphers!;
    ciphers.theirs.apply(padding, padding);
    const stream = mseStream(this.#method, ciphers, 0);
    return { method: this.#method, infohash: this.#options.infohash, stream, rest: this.#inbox.rest() };
  }
}

/** Returns the chosen method. Throws `DecodeError` unless it is exactly one of the offered ones, which prevents downgrades. */
function chosen(select: number, offered: number): MseMethod {
  const isOne = select === MSE_METHOD.plain || select === MSE_METHOD.rc4;
  if (isOne && (select & offered) !== 0) return select;
  throw new DecodeError("MSE", 8, `expected one of the methods ${offered}, got ${select}`);
}
