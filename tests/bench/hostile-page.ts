/** What a hostile page does with the chunks that it should forward: changes a byte, sends one of some seconds ago instead, or sends none. */
export type PageAttack = "corrupt" | "replay" | "nothing";

/**
 * Runs in a page before its scripts. Changes the chunks that it sends by data channels; all its other messages, which claim to have
 * every chunk, stay as they are.
 */
export function sendHostileChunks(attack: PageAttack): void {
  const HANDSHAKE_BYTES = 68;
  /** Longer messages are chunks, at 2 Mbit/s; many of the test pattern are shorter. */
  const CHUNK_BYTES = 1_000;
  const REPLAYED_MS = 8_000;
  const plain = RTCDataChannel.prototype.send as (this: RTCDataChannel, data: unknown) => void;
  const sent: { readonly at: number; readonly message: Uint8Array }[] = [];
  /** By channel: bytes of an incomplete message, and whether the handshake has passed. */
  const streams = new WeakMap<RTCDataChannel, { rest: Uint8Array; isOpen: boolean }>();

  const changed = (message: Uint8Array): Uint8Array | undefined => {
    if (message.length < CHUNK_BYTES || attack === "nothing")
      return message.length < CHUNK_BYTES ? message : undefined;
    if (attack === "corrupt") {
      const copy = message.slice();
      copy[copy.length - 10]! ^= 0xff;
      return copy;
    }
    const now = performance.now();
    sent.push({ at: now, message: message.slice() });
    while (sent.length > 1 && now - sent[1]!.at > REPLAYED_MS) sent.shift();
    return sent[0]!.message;
  };

  RTCDataChannel.prototype.send = function (this: RTCDataChannel, data: unknown) {
    const bytes = new Uint8Array(data as ArrayBuffer);
    const stream = streams.get(this) ?? { rest: new Uint8Array(), isOpen: false };
    streams.set(this, stream);
    let all = new Uint8Array(stream.rest.length + bytes.length);
    all.set(stream.rest);
    all.set(bytes, stream.rest.length);
    const out: Uint8Array[] = [];
    if (!stream.isOpen && all.length >= HANDSHAKE_BYTES) {
      stream.isOpen = true;
      out.push(all.slice(0, HANDSHAKE_BYTES));
      all = all.slice(HANDSHAKE_BYTES);
    }
    while (stream.isOpen && all.length >= 4) {
      const length = 4 + new DataView(all.buffer, all.byteOffset).getUint32(0);
      if (all.length < length) break;
      const message = changed(all.slice(0, length));
      if (message) out.push(message);
      all = all.slice(length);
    }
    stream.rest = all;
    for (const message of out) plain.call(this, message);
  } as never;
}
