import { NULL_PID, pidAt, TS_PACKET_BYTES } from "../media/ts-packet.ts";

/** Yields the chunks of a transport stream until it ends or the signal fires, and then cancels it. */
export async function* chunksOf(
  stream: ReadableStream<Uint8Array>,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array, void> {
  const reader = stream.getReader();
  const cancel = () => void reader.cancel().catch(() => {});
  signal.addEventListener("abort", cancel);
  try {
    while (!signal.aborted) {
      const { done, value } = await reader.read();
      if (done || signal.aborted) return;
      yield value;
    }
  } finally {
    signal.removeEventListener("abort", cancel);
    cancel();
  }
}

/** Returns true for null packets only, which keep the connection of a player. */
export function isStuffing(packets: Uint8Array): boolean {
  for (let at = 0; at + TS_PACKET_BYTES <= packets.length; at += TS_PACKET_BYTES)
    if (pidAt(packets, at) !== NULL_PID) return false;
  return true;
}
