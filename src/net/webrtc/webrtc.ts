import { addressScope, addressText, canonicalAddress, type PeerAddress } from "../../base/address.ts";
import { readU32, toHex } from "../../base/bytes.ts";
import { DecodeError, messageOf } from "../../base/errors.ts";
import type { Infohash } from "../../base/ids.ts";
import type { Log } from "../../base/log.ts";
import { after } from "../../base/time.ts";
import { decodeSdp, encodeSdp, type WebRtcDescription } from "../../protocol/webrtc/sdp.ts";
import { encodeStun, isStun, peekStun } from "../../protocol/webrtc/stun.ts";
import type { Runtime, TcpHandlers, TcpSocket } from "../../runtime/contract.ts";
import type { Offer } from "../../wire/tracker/server-ws.ts";
import type { SharedUdp } from "../contract.ts";
import { SCTP_PORT, WebRtcConnection, type WebRtcLinkDependencies } from "./connection.ts";
import type { WebRtc } from "./contract.ts";
import { type DtlsCertificate, DtlsLink, makeCertificate } from "./dtls.ts";

export interface WebRtcDependencies {
  readonly runtime: Pick<Runtime, "clock" | "sha1" | "sha256" | "aes128Gcm" | "randomBytes" | "lookup">;
  /** The shared port, with the address filter. */
  readonly udp: Pick<SharedUdp, "send" | "listen">;
  /** Returns the addresses at which peers can reach the port; with `isLocal`, those in local networks as well. */
  readonly ownAddresses: (isLocal: boolean) => readonly PeerAddress[];
  /** `host:port` of STUN servers. */
  readonly stunServers: readonly string[];
  /** Returns true if the content is open here, so that offers for it are answered. */
  readonly isOpen: (infohash: Infohash) => boolean;
  /** Takes over a connection that this engine offered: its transfer sends the first handshake. Undefined if it is not open. */
  readonly adopt: (infohash: Infohash, socket: TcpSocket) => TcpHandlers | undefined;
  readonly log: Log;
}

/** Trackers relay an offer at once, so an answer arrives within seconds; browsers wait as long as this. */
const OFFER_MS = 50_000;
/** Offers without an answer, of all swarms: each costs about 1 KiB. Beyond the limit the oldest is dropped. */
const MAX_OFFERS = 200;
/** Connections that are being established. Each costs a handshake of about 10 ms CPU. */
const MAX_CONNECTING = 32;
/** Open connections; the limit of all transfers is lower by default. */
const MAX_CONNECTIONS = 512;
/** Time limit of a STUN server. Offers wait for it. */
const STUN_TIMEOUT_MS = 500;
/** The address that a STUN server reports is asked for again after this time. */
const STUN_FRESH_MS = 120_000;
const MAX_MESSAGE_BYTES = 262_144;
const OFFER_ID_BYTES = 20;

/** Opens WebRTC on the shared UDP port. */
export async function openWebRtc(dependencies: WebRtcDependencies): Promise<WebRtc> {
  return new WebRtcHub(dependencies, await makeCertificate(dependencies.runtime.sha256));
}

class WebRtcHub implements WebRtc {
  readonly #dependencies: WebRtcDependencies;
  readonly #certificate: DtlsCertificate;
  readonly #links: WebRtcLinkDependencies;
  readonly #byId = new Map<number, WebRtcConnection>();
  readonly #byFragment = new Map<string, WebRtcConnection>();
  readonly #byAddress = new Map<string, WebRtcConnection>();
  /** Offers that have no answer yet, oldest first, by offer id. */
  readonly #offers = new Map<string, WebRtcConnection>();
  #accept: ((socket: TcpSocket) => TcpHandlers) | undefined;
  #isClosed = false;
  /** The external address that a STUN server reported, and the pending request. */
  #external: { readonly address: PeerAddress | undefined; readonly freshUntil: number } | undefined;
  #asking: Promise<PeerAddress | undefined> | undefined;
  readonly #stunResponses = new Map<string, (address: PeerAddress | undefined) => void>();

  constructor(dependencies: WebRtcDependencies, certificate: DtlsCertificate) {
    const { runtime, udp } = dependencies;
    this.#dependencies = dependencies;
    this.#certificate = certificate;
    this.#links = {
      runtime,
      certificate,
      openDtls: (options) => new DtlsLink(options),
      sendTo: (bytes, to) => udp.send(bytes, to),
      mayUse: (connection, address) => this.#mayUse(connection, address),
      found: (connection, address) => void this.#byAddress.set(addressText(address), connection),
      opened: (connection) => this.#opened(connection),
      ended: (connection, reason) => this.#ended(connection, reason),
    };
    udp.listen("webrtc", (bytes, from) => this.#datagram(bytes, from));
  }

  get size(): number {
    return this.#byId.size - this.#offers.size;
  }

  listen(accept: (socket: TcpSocket) => TcpHandlers): void {
    this.#accept = accept;
  }

  async offers(infohash: Infohash, isLocal: boolean, count: number): Promise<readonly Offer[]> {
    const candidates = await this.#candidates(isLocal);
    if (this.#isClosed || this.size >= MAX_CONNECTIONS) return [];
    return Array.from({ length: count }, () => {
      const offerId = toHex(this.#dependencies.runtime.randomBytes(OFFER_ID_BYTES));
      const connection = this.#create(infohash, { offerId, isOffer: true, allowsLocal: isLocal, mid: "0" });
      this.#offers.set(offerId, connection);
      this.#expire(offerId, connection);
      return { id: offerId, description: this.#describe(connection, candidates, "actpass") };
    });
  }

  async answer(infohash: Infohash, isLocal: boolean, offer: Offer): Promise<Offer | undefined> {
    const { isOpen, log } = this.#dependencies;
    if (this.#isClosed || !isOpen(infohash) || this.#connecting >= MAX_CONNECTING) return undefined;
    if (this.size >= MAX_CONNECTIONS) return undefined;
    let remote: WebRtcDescription;
    try {
      remote = decodeSdp("offer", offer.description.sdp);
    } catch (thrown) {
      if (!(thrown instanceof DecodeError)) throw thrown;
      log.debug("unusable WebRTC offer", { reason: messageOf(thrown) });
      return undefined;
    }
    const { mid } = remote;
    const connection = this.#create(infohash, {
      ...{ offerId: offer.id, isOffer: false, allowsLocal: isLocal, mid },
    });
    // Creating it first counts it against the limit while the addresses are looked up.
    connection.connect(remote);
    const candidates = await this.#candidates(isLocal);
    const setup = remote.setup === "active" ? "passive" : "active";
    return { id: offer.id, description: this.#describe(connection, candidates, setup) };
  }

  answered(infohash: Infohash, answer: Offer): void {
    const connection = this.#offers.get(answer.id);
    if (connection?.options.infohash !== infohash) return;
    this.#offers.delete(answer.id);
    if (this.#connecting >= MAX_CONNECTING) {
      connection.close();
      return;
    }
    try {
      connection.connect(decodeSdp("answer", answer.description.sdp));
    } catch (thrown) {
      if (!(thrown instanceof DecodeError)) throw thrown;
      this.#dependencies.log.debug("unusable WebRTC answer", { reason: messageOf(thrown) });
      connection.close();
    }
  }

  close(): void {
    this.#isClosed = true;
    for (const connection of [...this.#byId.values()]) connection.close();
    for (const respond of this.#stunResponses.values()) respond(undefined);
  }

  get #connecting(): number {
    return [...this.#byId.values()].filter(({ isConnecting }) => isConnecting).length;
  }

  #create(
    infohash: Infohash,
    options: { offerId: string; isOffer: boolean; allowsLocal: boolean; mid: string },
  ): WebRtcConnection {
    const { randomBytes } = this.#dependencies.runtime;
    let id = readU32(randomBytes(4), 0);
    while (id === 0 || this.#byId.has(id)) id = readU32(randomBytes(4), 0);
    const connection = new WebRtcConnection(this.#links, { id, infohash, ...options });
    this.#byId.set(id, connection);
    this.#byFragment.set(connection.fragment, connection);
    return connection;
  }

  #describe(
    { fragment, password, options }: WebRtcConnection,
    candidates: readonly PeerAddress[],
    setup: WebRtcDescription["setup"],
  ): Offer["description"] {
    const type = options.isOffer ? ("offer" as const) : ("answer" as const);
    const { fingerprint } = this.#certificate;
    const description = {
      ...{ type, fragment, password, fingerprint, setup, candidates },
      ...{ mid: options.mid, sctpPort: SCTP_PORT, maxMessageBytes: MAX_MESSAGE_BYTES },
    };
    return { type, sdp: encodeSdp(description, readU32(this.#dependencies.runtime.randomBytes(4), 0)) };
  }

  /** Drops an offer without an answer. */
  #expire(offerId: string, connection: WebRtcConnection): void {
    const { clock } = this.#dependencies.runtime;
    clock.at(after(clock.now(), OFFER_MS), () => {
      if (this.#offers.get(offerId) === connection) connection.close();
    });
    for (const [, oldest] of this.#offers) {
      if (this.#offers.size <= MAX_OFFERS) return;
      oldest.close();
    }
  }

  /**
   * A tracker on the Internet must not direct us to devices of the local network, as for peers of other trackers. The
   * address identifies a connection, and an engine has one UDP port, so two engines have one connection at a time.
   */
  #mayUse(connection: WebRtcConnection, { host, port }: PeerAddress): boolean {
    const scope = addressScope(host);
    if (scope === "multicast" || scope === "unspecified" || port === 0) return false;
    if (scope !== "global" && !connection.options.allowsLocal) return false;
    const user = this.#byAddress.get(addressText({ host, port }));
    return user === undefined || user === connection;
  }

  #datagram(bytes: Uint8Array, from: PeerAddress): void {
    if (this.#isClosed) return;
    if (!isStun(bytes)) {
      this.#byAddress.get(addressText(from))?.dtls(bytes);
      return;
    }
    try {
      const message = peekStun(bytes);
      const { kind, username, transaction } = message;
      const asked = this.#stunResponses.get(toHex(transaction));
      if (asked && kind !== "request") asked(message.mapped);
      else if (kind === "request") this.#byFragment.get(username?.split(":", 1)[0] ?? "")?.stun(bytes, from);
      else this.#byId.get(readU32(transaction, 0))?.stun(bytes, from);
    } catch (thrown) {
      // Anyone can send a datagram.
      if (!(thrown instanceof DecodeError)) throw thrown;
    }
  }

  #opened(connection: WebRtcConnection): TcpHandlers | undefined {
    const { infohash, isOffer } = connection.options;
    return isOffer ? this.#dependencies.adopt(infohash, connection) : this.#accept?.(connection);
  }

  #ended(connection: WebRtcConnection, reason: string): void {
    const { id, offerId, infohash } = connection.options;
    this.#byId.delete(id);
    this.#byFragment.delete(connection.fragment);
    if (this.#offers.get(offerId) === connection) {
      this.#offers.delete(offerId);
      return;
    }
    for (const key of connection.addresses.keys())
      if (this.#byAddress.get(key) === connection) this.#byAddress.delete(key);
    const peer = addressText(connection.remote);
    this.#dependencies.log.debug("WebRTC connection ended", { infohash, peer, reason });
  }

  async #candidates(isLocal: boolean): Promise<readonly PeerAddress[]> {
    const external = await this.#externalAddress();
    const own = this.#dependencies.ownAddresses(isLocal);
    const isNew = external && !own.some((each) => addressText(each) === addressText(external));
    return isNew ? [...own, external] : own;
  }

  /** Asks the STUN servers for the external address of the port, at most every two minutes. */
  async #externalAddress(): Promise<PeerAddress | undefined> {
    const { stunServers, runtime } = this.#dependencies;
    if (stunServers.length === 0) return undefined;
    const now = runtime.clock.now();
    if (this.#external && now < this.#external.freshUntil) return this.#external.address;
    this.#asking ??= this.#askStunServers();
    const address = await this.#asking;
    this.#asking = undefined;
    this.#external = { address, freshUntil: after(now, STUN_FRESH_MS) };
    return address;
  }

  async #askStunServers(): Promise<PeerAddress | undefined> {
    for (const server of this.#dependencies.stunServers) {
      const address = await this.#askStunServer(server).catch((error: unknown) => {
        this.#dependencies.log.debug("STUN server failed", { server, reason: messageOf(error) });
        return undefined;
      });
      if (address) return address;
    }
    return undefined;
  }

  async #askStunServer(server: string): Promise<PeerAddress | undefined> {
    const { runtime, udp } = this.#dependencies;
    const { clock, sha1, randomBytes, lookup } = runtime;
    const at = server.lastIndexOf(":");
    const name = server.slice(0, at).replace(/^\[|\]$/g, "");
    const literal = canonicalAddress(name);
    const [host] = literal === undefined ? await lookup(name) : [literal];
    if (host === undefined || this.#isClosed) return undefined;
    const transaction = randomBytes(12);
    const request = encodeStun({ kind: "request", transaction }, undefined, sha1);
    const key = toHex(transaction);
    return new Promise((resolve) => {
      const done = (address: PeerAddress | undefined) => {
        this.#stunResponses.delete(key);
        cancel();
        resolve(address);
      };
      const cancel = clock.at(after(clock.now(), STUN_TIMEOUT_MS), () => done(undefined));
      this.#stunResponses.set(key, done);
      udp.send(request, { host, port: Number(server.slice(at + 1)) });
    });
  }
}
