import { WakeTimer } from "../../async/wake-timer.ts";
import { addressText, type PeerAddress } from "../../base/address.ts";
import { readU32, writeU32 } from "../../base/bytes.ts";
import { DecodeError, messageOf } from "../../base/errors.ts";
import type { Infohash } from "../../base/ids.ts";
import { earliest } from "../../base/time.ts";
import { DataChannel, type DataChannelOutput } from "../../protocol/webrtc/data-channel.ts";
import { IceAgent } from "../../protocol/webrtc/ice-agent.ts";
import type { WebRtcDescription } from "../../protocol/webrtc/sdp.ts";
import type { Runtime, TcpHandlers, TcpSocket } from "../../runtime/contract.ts";
import type { DtlsCertificate, DtlsLink, DtlsOptions } from "./dtls.ts";

/** What a connection uses of its surroundings. */
export interface WebRtcLinkDependencies {
  readonly runtime: Pick<Runtime, "clock" | "sha1" | "sha256" | "aes128Gcm" | "randomBytes">;
  readonly certificate: DtlsCertificate;
  openDtls(options: DtlsOptions): DtlsLink;
  sendTo(bytes: Uint8Array, to: PeerAddress): void;
  /** Returns false for an address that another connection uses, or that the tracker may not lead us to. */
  mayUse(connection: WebRtcConnection, address: PeerAddress): boolean;
  /** The peer receives at this address, so datagrams from it belong to the connection. */
  found(connection: WebRtcConnection, address: PeerAddress): void;
  /** The data channel is open; returns its handlers, or undefined if it is not wanted. */
  opened(connection: WebRtcConnection): TcpHandlers | undefined;
  ended(connection: WebRtcConnection, reason: string): void;
}

export interface WebRtcLinkOptions {
  /** Also the first four bytes of its STUN transactions. */
  readonly id: number;
  readonly infohash: Infohash;
  readonly offerId: string;
  readonly isOffer: boolean;
  /** True if the tracker that relays the descriptions may lead to addresses of local networks. */
  readonly allowsLocal: boolean;
  readonly mid: string;
}

/** Our port in the SCTP header; there is one association, so any number would do. */
export const SCTP_PORT = 5_000;
/** Random bytes of a fragment and of a password: 6 and 24 characters in base64 (RFC 8839 5.4: 24 and 128 bits). */
const FRAGMENT_BYTES = 6;
const PASSWORD_BYTES = 24;
/** Backpressure: `write` returns false at this many unsent bytes. */
const HIGH_WATER_BYTES = 1024 * 1024;
const TRANSACTION_BYTES = 12;

/** One WebRTC connection with one data channel, as a socket: ICE finds an address, DTLS encrypts, SCTP orders. */
export class WebRtcConnection implements TcpSocket {
  readonly options: WebRtcLinkOptions;
  readonly fragment: string;
  readonly password: string;
  readonly transport = "webrtc";
  /** Addresses at which datagrams of the peer may arrive. */
  readonly addresses = new Map<string, PeerAddress>();
  readonly #dependencies: WebRtcLinkDependencies;
  readonly #ice: IceAgent;
  readonly #timer: WakeTimer;
  #remote: WebRtcDescription | undefined;
  #dtls: DtlsLink | undefined;
  #channel: DataChannel | undefined;
  #handlers: TcpHandlers | undefined;
  #isBusy = false;
  #isClosed = false;

  constructor(dependencies: WebRtcLinkDependencies, options: WebRtcLinkOptions) {
    const { clock, sha1, randomBytes } = dependencies.runtime;
    this.#dependencies = dependencies;
    this.options = options;
    this.fragment = base64(randomBytes(FRAGMENT_BYTES));
    this.password = base64(randomBytes(PASSWORD_BYTES));
    this.#timer = new WakeTimer(clock, () => this.#wake());
    this.#ice = new IceAgent({
      fragment: this.fragment,
      password: this.password,
      isControlling: options.isOffer,
      tieBreaker: randomBytes(8),
      sha1,
      newTransaction: () => transactionOf(options.id, randomBytes(TRANSACTION_BYTES)),
      mayUse: (address) => dependencies.mayUse(this, address),
    });
  }

  get remote(): PeerAddress {
    return this.#ice.selected ?? { host: "0.0.0.0", port: 0 };
  }

  get bufferedBytes(): number {
    return this.#channel?.bufferedBytes ?? 0;
  }

  /** Whether the description of the peer is known. */
  get isConnecting(): boolean {
    return this.#remote !== undefined && this.#handlers === undefined;
  }

  /** Connects to the described peer. An answerer is the DTLS client unless the offer decides otherwise (RFC 8842 5.3). */
  connect(remote: WebRtcDescription): void {
    if (this.#remote) return;
    this.#remote = remote;
    this.#ice.setRemote(remote, remote.candidates, this.#now);
    this.#run();
  }

  /** Takes a STUN message. Throws `DecodeError` if it is malformed or not authentic. */
  stun(bytes: Uint8Array, from: PeerAddress): void {
    this.#ice.received(bytes, from, this.#now);
    if (this.#ice.isValid(from) && !this.addresses.has(addressText(from))) {
      this.addresses.set(addressText(from), from);
      this.#dependencies.found(this, from);
    }
    this.#run();
  }

  /** Takes a DTLS datagram of the peer. */
  dtls(bytes: Uint8Array): void {
    this.#dtls?.datagram(bytes);
    this.#run();
  }

  write(bytes: Uint8Array): boolean {
    this.#channel?.write(bytes, this.#now);
    this.#runSoon();
    return this.bufferedBytes < HIGH_WATER_BYTES;
  }

  pause(): void {
    this.#channel?.pause();
  }

  resume(): void {
    this.#channel?.resume();
    this.#runSoon();
  }

  close(): void {
    this.#end("closed by us", true);
  }

  get #now() {
    return this.#dependencies.runtime.clock.now();
  }

  #wake(): void {
    this.#ice.wake(this.#now);
    this.#channel?.wake(this.#now);
    this.#run();
  }

  /** Handlers must not be called while the caller of `write` or `resume` runs. */
  #runSoon(): void {
    queueMicrotask(() => this.#run());
  }

  /** Executes all outputs. */
  #run(): void {
    // Handlers cause further outputs, which the outer call executes.
    if (this.#isBusy || this.#isClosed) return;
    this.#isBusy = true;
    try {
      for (;;) {
        const channelOutput = this.#channel?.poll();
        if (channelOutput) this.#execute(channelOutput);
        else if (!this.#executeIce()) break;
      }
    } finally {
      this.#isBusy = false;
    }
    if (!this.#isClosed) this.#timer.want(earliest(this.#ice.nextWake(), this.#channel?.nextWake()));
  }

  #executeIce(): boolean {
    const output = this.#ice.poll();
    if (output?.kind === "send") this.#dependencies.sendTo(output.bytes, output.to);
    else if (output?.kind === "selected") this.#startDtls();
    else if (output) this.#end(output.reason);
    return output !== undefined;
  }

  #startDtls(): void {
    if (this.#dtls || !this.#remote) return;
    const { runtime } = this.#dependencies;
    const remote = this.#remote;
    const isClient = this.options.isOffer ? remote.setup === "passive" : remote.setup !== "active";
    this.#dtls = this.#dependencies.openDtls({
      ...{ isClient, runtime, certificate: this.#dependencies.certificate, fingerprint: remote.fingerprint },
      send: (bytes) => {
        const to = this.#ice.selected;
        if (to) this.#dependencies.sendTo(bytes, to);
      },
      connected: () => this.#startChannel(isClient),
      received: (bytes) => this.#packet(bytes),
      failed: (reason) => this.#end(reason),
    });
  }

  #startChannel(isDtlsClient: boolean): void {
    const { randomBytes } = this.#dependencies.runtime;
    const random = randomBytes(8);
    this.#channel = new DataChannel({
      opens: this.options.isOffer,
      isDtlsClient,
      port: { local: SCTP_PORT, remote: this.#remote!.sctpPort },
      tag: readU32(random, 0) || 1,
      firstTsn: readU32(random, 4),
      cookie: randomBytes(16),
    });
    this.#channel.start(this.#now);
    this.#run();
  }

  /** Takes a decrypted packet. Received bytes are views on it, so they are passed on at once. */
  #packet(bytes: Uint8Array): void {
    try {
      this.#channel?.received(bytes, this.#now);
    } catch (thrown) {
      if (!(thrown instanceof DecodeError)) throw thrown;
      this.#end(messageOf(thrown));
    }
    this.#run();
  }

  #execute(output: DataChannelOutput): void {
    switch (output.kind) {
      case "send":
        this.#dtls?.send(output.bytes);
        break;
      case "opened":
        this.#handlers = this.#dependencies.opened(this);
        if (!this.#handlers) this.#end("not wanted");
        break;
      case "received":
        if (!this.#isClosed) this.#handlers?.received(output.bytes);
        break;
      case "drained":
        if (!this.#isClosed) this.#handlers?.drained();
        break;
      case "closed":
        this.#end(output.reason);
        break;
    }
  }

  #end(reason: string, isSoon = false): void {
    if (this.#isClosed) return;
    this.#channel?.close();
    for (let output = this.#channel?.poll(); output; output = this.#channel?.poll())
      if (output.kind === "send") this.#dtls?.send(output.bytes);
    this.#isClosed = true;
    this.#timer.stop();
    this.#dtls?.close();
    this.#dependencies.ended(this, reason);
    const closed = () => this.#handlers?.closed(reason);
    if (isSoon) queueMicrotask(closed);
    else closed();
  }
}

/** A STUN transaction starts with the id of its connection, so that the response is recognized. */
function transactionOf(id: number, random: Uint8Array): Uint8Array {
  writeU32(random, 0, id);
  return random;
}

/** Base64 of random bytes, whose number is a multiple of three; the alphabet is that of ICE. */
function base64(bytes: Uint8Array): string {
  return btoa(String.fromCharCode(...bytes));
}
