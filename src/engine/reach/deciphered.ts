import type { MseStream } from "../../swarm/mse/stream.ts";
import type { Scratch } from "./scratch.ts";

/** Hands on in the clear what came on an encrypted connection; `received` may look at it during the call only. */
export function deciphered(
  bytes: Uint8Array,
  stream: MseStream,
  scratch: Scratch,
  received: (clear: Uint8Array) => void,
): void {
  if (stream.isClear) {
    received(bytes);
    return;
  }
  scratch.lend(bytes.length, (clear) => {
    stream.decrypt(bytes, clear);
    received(clear);
  });
}
