import { addressText, type PeerAddress } from "../../base/address.ts";
import { concatBytes } from "../../base/bytes.ts";
import { messageOf } from "../../base/errors.ts";
import { after } from "../../base/time.ts";
import { readRtpTs } from "../../media/rtp.ts";
import { PacketAligner } from "../../media/ts-align.ts";
import type { Clock, Net, UdpSocket } from "../../runtime/contract.ts";
import { type Deferred, deferred } from "../deferred.ts";
import type { LiveFeed, LiveInputFacts } from "./source-feed.ts";
import type { UdpPlace } from "./source-place.ts";

/** What waits to be taken: 1.6 s of 20 Mbit/s. The oldest goes first. */
const RING_BYTES = 4 * 1024 * 1024;
/** Given out at once. */
const TAKE_BYTES = 64 * 1024;
/** What the system is asked to keep while we are busy. */
const SYSTEM_BUFFER_BYTES = 4 * 1024 * 1024;
/** Whoever was heard first is listened to alone, until silent for so long: two streams in one port would spoil each other. */
const SENDER_SILENT_MS = 3000;
/** A group that is silent for so long is joined anew: where its network was away, our membership went with it. */
const REJOIN_MS = 30_000;
/** A datagram that is so far behind the newest was not late: the sender counts anew (RFC 3550 A.1). */
const MAX_LATE_DATAGRAMS = 100;

/** The packets that are sent to a UDP port of ours, or to a group; plain, or in RTP. */
export class UdpFeed implements LiveFeed {
  readonly #place: UdpPlace;
  readonly #net: Pick<Net, "bindUdp">;
  readonly #clock: Clock;
  readonly #facts: LiveInputFacts;
  readonly #aligner = new PacketAligner();
  #socket: UdpSocket | undefined;
  #ring: Uint8Array[] = [];
  #ringBytes = 0;
  #arrival: Deferred<void> = deferred();
  #sender: { readonly address: string; at: number } | undefined;
  #sequence: number | undefined;
  #isClosed = false;

  constructor(
    place: UdpPlace,
    parts: { readonly net: Pick<Net, "bindUdp">; readonly clock: Clock },
    facts: LiveInputFacts,
  ) {
    this.#place = place;
    this.#net = parts.net;
    this.#clock = parts.clock;
    this.#facts = facts;
  }

  async next(): Promise<Uint8Array | undefined> {
    if (!this.#socket && !this.#isClosed) await this.#bind();
    for (;;) {
      if (this.#isClosed) return undefined;
      if (this.#ring.length === 0) {
        await this.#arrived();
        continue;
      }
      const packets = this.#aligner.push(this.#taken());
      this.#facts.skippedBytes = this.#aligner.skippedBytes;
      if (packets.length > 0) return packets;
    }
  }

  close(): void {
    this.#isClosed = true;
    this.#socket?.close();
    this.#ring = [];
    this.#arrival.resolve();
  }

  /** Waits for something to come; in a silent group, until it is joined anew. */
  async #arrived(): Promise<void> {
    if (!this.#place.group) return this.#arrival.promise;
    let isSilent = false;
    const cancel = this.#clock.at(after(this.#clock.now(), REJOIN_MS), () => {
      isSilent = true;
      this.#wake();
    });
    await this.#arrival.promise;
    cancel();
    if (isSilent && !this.#isClosed) await this.#rejoin();
  }

  async #rejoin(): Promise<void> {
    const before = this.#socket;
    try {
      await this.#bind();
      before?.close();
    } catch (thrown) {
      // Most likely the network is away still.
      this.#facts.problem = messageOf(thrown);
    }
  }

  #wake(): void {
    const arrival = this.#arrival;
    this.#arrival = deferred();
    arrival.resolve();
  }

  async #bind(): Promise<void> {
    const { bind, group, networkAddress } = this.#place;
    const socket = await this.#net.bindUdp(bind, (bytes, from) => this.#received(bytes, from), {
      receiveBufferBytes: SYSTEM_BUFFER_BYTES,
      ...(group && { multicast: { group, ...(networkAddress && { networkAddress }) } }),
    });
    this.#socket = socket;
    if (this.#isClosed) socket.close();
  }

  #received(datagram: Uint8Array, from: PeerAddress): void {
    if (this.#isClosed || !this.#isSender(from)) return;
    // A copy: one runtime gives a view of 64 KiB with each datagram.
    const packets = this.#unwrapped(datagram)?.slice();
    if (!packets) return;
    this.#ring.push(packets);
    this.#ringBytes += packets.length;
    while (this.#ringBytes > RING_BYTES) {
      const oldest = this.#ring.shift()!;
      this.#ringBytes -= oldest.length;
      this.#facts.droppedBytes += oldest.length;
    }
    this.#wake();
  }

  #isSender(from: PeerAddress): boolean {
    const address = addressText(from);
    const now = this.#clock.now();
    if (this.#sender && this.#sender.address !== address && now - this.#sender.at < SENDER_SILENT_MS) {
      this.#facts.foreignDatagrams++;
      return false;
    }
    if (this.#sender?.address === address) this.#sender.at = now;
    else {
      this.#sender = { address, at: now };
      this.#sequence = undefined;
      this.#facts.beginnings++;
    }
    return true;
  }

  /** The packets of a datagram; undefined for RTP that comes twice, or after what follows it. */
  #unwrapped(datagram: Uint8Array): Uint8Array | undefined {
    const rtp = readRtpTs(datagram);
    if (!rtp) return datagram;
    const before = this.#sequence;
    const step = before === undefined ? 1 : (rtp.sequence - before) & 0xffff;
    if (step === 0 || step > 0x1_0000 - MAX_LATE_DATAGRAMS) return undefined;
    if (step > 1 && step < 0x8000) this.#facts.lostDatagrams += step - 1;
    this.#sequence = rtp.sequence;
    return rtp.packets;
  }

  #taken(): Uint8Array {
    let count = 0;
    let bytes = 0;
    while (count < this.#ring.length && bytes < TAKE_BYTES) bytes += this.#ring[count++]!.length;
    this.#ringBytes -= bytes;
    return concatBytes(this.#ring.splice(0, count));
  }
}
