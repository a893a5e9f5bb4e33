import { LARGE_PACKET_BYTES, MAX_SIZE_PROBES, SMALL_PACKET_BYTES } from "./limits.ts";

/**
 * How long our datagrams may be. We begin with what fits everywhere. A packet with as few bytes, and padding up to the
 * large size, tries the path: if it arrives, all may be so long; if it is lost, it is sent again without its padding. So a
 * path that swallows long packets never holds anything up. (A packet that has gone out cannot be cut in two: perhaps it
 * has arrived, and only its acknowledgement was lost.)
 */
export class PacketSize {
  #isLarge = false;
  #probes = 0;
  #isProbing = false;

  /** Header and payload. */
  get bytes(): number {
    return this.#isLarge ? LARGE_PACKET_BYTES : SMALL_PACKET_BYTES;
  }

  /** Whether the next packet should be padded to {@link LARGE_PACKET_BYTES}. */
  get wantsProbe(): boolean {
    return !this.#isLarge && !this.#isProbing && this.#probes < MAX_SIZE_PROBES;
  }

  probed(): void {
    this.#isProbing = true;
    this.#probes++;
  }

  probeArrived(): void {
    this.#isProbing = false;
    this.#isLarge = true;
  }

  probeLost(): void {
    this.#isProbing = false;
  }
}
