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
  xored,
} from "../../wire/mse.ts";
import {
  MSE_KEY_BYTES,
  MSE_PRIVATE_BYTES,
  type MseKeyPair,
  mseKeyPair,
  mseSecret,
} from "../../wire/mse-keys.ts";
import type { MseHandshake, MseOutcome, MseTools } from "./contract.ts";
import { MseInbox } from "./inbox.ts";
import { randomPadding, readPaddingBytes } from "./padding.ts";
import { mseStream } from "./stream.ts";

/** What a call is made with. */
export interface MseCall {
  /** 20 bytes. */
  readonly infohash: Uint8Array;
  /** What goes along with the handshake: the greeting of BEP 3, as others send it. At most 65535 bytes. */
  readonly initial: Uint8Array;
  /** The methods that we would go on with. */
  readonly offered: number;
}

/** The calling end of MSE: our key; the greeting behind the name of what we want, under the secret; then as they choose. */
export class MseCaller implements MseHandshake {
  readonly #call: MseCall;
  readonly #tools: MseTools;
  readonly #keys: MseKeyPair;
  readonly #inbox = new MseInbox();
  readonly #padding = { left: MSE_MAX_PAD_BYTES };
  #stage: "key" | "mark" | "choice" | "padding" | "done" = "key";
  #output: Uint8Array | undefined;
  #ciphers: MseCiphers | undefined;
  /** The mark by which their padding ends: zeros as they encipher them. */
  #mark = new Uint8Array(MSE_VC_BYTES);
  #method: MseMethod = MSE_METHOD.rc4;
  #paddingBytes = 0;

  constructor(call: MseCall, tools: MseTools) {
    assert((call.offered & MSE_BOTH) !== 0, "a call that offers no method");
    this.#call = call;
    this.#tools = tools;
    this.#keys = mseKeyPair(tools.randomBytes(MSE_PRIVATE_BYTES));
    this.#output = concatBytes([this.#keys.publicKey, randomPadding(tools)]);
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
    const { infohash } = this.#call;
    const { sha1 } = this.#tools;
    const secret = mseSecret(this.#keys.privateKey, theirs);
    this.#ciphers = mseCiphers(secret, infohash, true, sha1);
    this.#ciphers.theirs.apply(this.#mark, this.#mark);
    this.#output = concatBytes([
      req1Hash(secret, sha1),
      xored(req2Hash(infohash, sha1), req3Hash(secret, sha1)),
      this.#offer(this.#ciphers),
    ]);
    this.#stage = "mark";
    return true;
  }

  /** What is enciphered of it: zeros, what we offer, padding, and the greeting, each with its length. */
  #offer({ ours }: MseCiphers): Uint8Array {
    const { initial, offered } = this.#call;
    const padding = randomPadding(this.#tools);
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
    this.#method = chosen(readU32(head, 0), this.#call.offered);
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
    return { method: this.#method, infohash: this.#call.infohash, stream, rest: this.#inbox.rest() };
  }
}

/** One method, and one of ours: nobody may lead us to what we have not offered. */
function chosen(select: number, offered: number): MseMethod {
  const isOne = select === MSE_METHOD.plain || select === MSE_METHOD.rc4;
  if (isOne && (select & offered) !== 0) return select;
  throw new DecodeError("MSE", 8, `expected one of the methods ${offered}, got ${select}`);
}
