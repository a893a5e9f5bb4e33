import { type Deferred, deferred } from "../../async/deferred.ts";
import { addressText, type PeerAddress } from "../../base/address.ts";
import { concatBytes } from "../../base/bytes.ts";
import { messageOf } from "../../base/errors.ts";
import { after } from "../../base/time.ts";
import { readRtpTs } from "../../media/rtp.ts";
import { PacketAligner } from "../../media/ts-align.ts";
import type { Clock, Net, UdpSocket } from "../../runtime/contract.ts";
import type { LiveFeed, LiveInputFacts } from "./source-feed.ts";
import type { UdpPlace } from "./source-place.ts";

/** Limit of the receive queue: 1.6 s of 20 Mbit/s. The oldest datagram is dropped first. */
const MAX_QUEUE_BYTES = 4 * 1024 * 1024;
/** Bytes per delivery. */
const BATCH_BYTES = 64 * 1024;
/** Receive buffer requested from the system, for the time in which this process is busy. */
const RECEIVE_BUFFER_BYTES = 4 * 1024 * 1024;
/** Only the first sender is accepted until it has been silent for this long: two streams on one port would corrupt
 * each other. */
const SENDER_TIMEOUT_MS = 3000;
/** A group that is silent for this long is joined again: membership is lost when its network goes down. */
const REJOIN_MS = 30_000;
/** A datagram further behind the newest one is not late: the sender has restarted its sequence numbers (RFC 3550 A.1). */
const MAX_LATE_DATAGRAMS = 100;

/** The packets sent to a local UDP port or a multicast group, plain or in RTP. */
export class UdpFeed implements LiveFeed {
  readonly #place: UdpPlace;
  readonly #net: Pick<Net, "bindUdp">;
  readonly #clock: Clock;
  readonly #facts: LiveInputFacts;
  readonly #aligner = new PacketAligner();
  #socket: UdpSocket | undefined;
  #queue: Uint8Array[] = [];
  #queueBytes = 0;
  #arrival: Deferred<void> = deferred();
  #sender: { readonly address: string; at: number } | undefined;
  #sequence: number | undefined;
  #isClosed = false;

  constructor(
    place: UdpPlace,
    dependencies: { readonly net: Pick<Net, "bindUdp">; readonly clock: Clock },
    facts: LiveInputFacts,
  ) {
    this.#place = place;
    this.#net = dependencies.net;
    this.#clock = dependencies.clock;
    this.#facts = facts;
  }

  async next(): Promise<Uint8Array | undefined> {
    if (!this.#socket && !this.#isClosed) await this.#bind();
    for (;;) {
      if (this.#isClosed) return undefined;
      if (this.#queue.length === 0) {
        await this.#nextArrival();
        continue;
      }
      const packets = this.#aligner.push(this.#takeBatch());
      this.#facts.skippedBytes = this.#aligner.skippedBytes;
      if (packets.length > 0) return packets;
    }
  }

  close(): void {
    this.#isClosed = true;
    this.#socket?.close();
    this.#queue = [];
    this.#arrival.resolve();
  }

  /** Waits for the next datagram. A group that stays silent is joined again. */
  async #nextArrival(): Promise<void> {
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
      // The network is probably still down.
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
      receiveBufferBytes: RECEIVE_BUFFER_BYTES,
      ...(group && { multicast: { group, ...(networkAddress && { networkAddress }) } }),
    });
    this.#socket = socket;
    if (this.#isClosed) socket.close();
  }

  #received(datagram: Uint8Array, from: PeerAddress): void {
    if (this.#isClosed || !this.#isAccepted(from)) return;
    // A copy: one runtime passes a view of 64 KiB with each datagram.
    const packets = this.#packetsOf(datagram)?.slice();
    if (!packets) return;
    this.#queue.push(packets);
    this.#queueBytes += packets.length;
    while (this.#queueBytes > MAX_QUEUE_BYTES) {
      const oldest = this.#queue.shift()!;
      this.#queueBytes -= oldest.length;
      this.#facts.droppedBytes += oldest.length;
    }
    this.#wake();
  }

  #isAccepted(from: PeerAddress): boolean {
    const address = addressText(from);
    const now = this.#clock.now();
    if (this.#sender && this.#sender.address !== address && now - this.#sender.at < SENDER_TIMEOUT_MS) {
      this.#facts.foreignDatagrams++;
      return false;
    }
    if (this.#sender?.address === address) this.#sender.at = now;
    else {
      this.#sender = { address, at: now };
      this.#sequence = undefined;
      this.#facts.starts++;
    }
    return true;
  }

  /** Returns the packets of a datagram; undefined for a duplicate RTP datagram, or one that arrives after its
   * successor. */
  #packetsOf(datagram: Uint8Array): Uint8Array | undefined {
    const rtp = readRtpTs(datagram);
    if (!rtp) return datagram;
    const before = this.#sequence;
    const step = before === undefined ? 1 : (rtp.sequence - before) & 0xffff;
    if (step === 0 || step > 0x1_0000 - MAX_LATE_DATAGRAMS) return undefined;
    if (step > 1 && step < 0x8000) this.#facts.lostDatagrams += step - 1;
    this.#sequence = rtp.sequence;
    return rtp.packets;
  }

  #takeBatch(): Uint8Array {
    let count = 0;
    let bytes = 0;
    while (count < this.#queue.length && bytes < BATCH_BYTES) bytes += this.#queue[count++]!.length;
    this.#queueBytes -= bytes;
    return concatBytes(this.#queue.splice(0, count));
  }
}
