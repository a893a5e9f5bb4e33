import type { PeerAddress } from "../base/address.ts";
import { concatBytes } from "../base/bytes.ts";
import { after } from "../base/time.ts";
import { decodeUtf8 } from "../base/utf8.ts";
import type { DeviceRuntime } from "./contract.ts";

const TIMEOUT_MS = 8_000;
/** Notifications, which Kodi sends to every client, may precede the answer. */
const MAX_BYTES = 256 * 1024;

/**
 * Sends one JSON-RPC request with id 1 over TCP, as Kodi listens for on port 9090, and resolves to its answer. Kodi sends objects without a
 * separator. Rejects if the connection ends, after 8 s, or if more than 256 KiB arrive.
 */
export function callOverTcp(
  { net, clock }: Pick<DeviceRuntime, "net" | "clock">,
  address: PeerAddress,
  request: Uint8Array,
): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const received: Uint8Array[] = [];
    let bytes = 0;
    const finish = (settle: () => void) => {
      cancel();
      settle();
      socket.close();
    };
    const socket = net.connect(
      address,
      {
        opened: () => void socket.write(request),
        received(chunk) {
          received.push(chunk.slice());
          bytes += chunk.length;
          if (bytes > MAX_BYTES) return finish(() => reject(new Error("the device sent too much")));
          try {
            const answer = answerIn(decodeUtf8(concatBytes(received)));
            if (answer !== undefined) finish(() => resolve(answer));
          } catch {
            finish(() => reject(new Error("the device sent something that is not JSON")));
          }
        },
        drained() {},
        closed: (reason) => finish(() => reject(new Error(`the device closed the connection: ${reason}`))),
      },
      { timeoutMs: TIMEOUT_MS },
    );
    const cancel = clock.at(after(clock.now(), TIMEOUT_MS), () =>
      finish(() => reject(new Error("the device did not answer within 8 s"))),
    );
  });
}

/** Returns the first complete object with the id 1; undefined if it has not arrived. */
function answerIn(text: string): unknown {
  for (const object of completeObjects(text)) {
    const value = JSON.parse(object) as { id?: unknown };
    if (value.id === 1) return value;
  }
  return undefined;
}

/** Splits concatenated JSON objects; a last one that is not complete is left out. */
function completeObjects(text: string): string[] {
  const objects: string[] = [];
  let [depth, start, isText] = [0, 0, false];
  for (let at = 0; at < text.length; at++) {
    const sign = text[at];
    if (isText) {
      if (sign === "\\") at++;
      else if (sign === '"') isText = false;
    } else if (sign === '"') isText = true;
    else if (sign === "{" && depth++ === 0) start = at;
    else if (sign === "}" && --depth === 0) objects.push(text.slice(start, at + 1));
  }
  return objects;
}
