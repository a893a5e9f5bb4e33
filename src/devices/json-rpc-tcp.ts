import type { PeerAddress } from "../base/address.ts";
import { concatBytes } from "../base/bytes.ts";
import { after } from "../base/time.ts";
import { decodeUtf8, encodeUtf8 } from "../base/utf8.ts";
import type { TcpSocket } from "../runtime/contract.ts";
import type { DeviceRuntime } from "./contract.ts";

const TIMEOUT_MS = 8_000;
/** The connection is closed this long after the last call. */
const IDLE_MS = 60_000;
/** One message; a notification may carry the description of what plays. */
const MAX_MESSAGE_BYTES = 256 * 1024;
/** Calls that wait for an answer. */
const MAX_WAITING = 16;

interface Waiting {
  resolve(answer: unknown): void;
  reject(error: Error): void;
}

/**
 * JSON-RPC over TCP, as Kodi listens for on port 9090. One connection serves all calls, because Kodi 20 can crash when connections close
 * while it sends notifications. It opens with the first call, and again after it was closed.
 */
export class JsonRpcTcp {
  readonly #runtime: Pick<DeviceRuntime, "net" | "clock">;
  readonly #address: PeerAddress;
  readonly #waiting = new Map<number, Waiting>();
  #socket: TcpSocket | undefined;
  #opening: Uint8Array<ArrayBuffer>[] | undefined;
  #received: Uint8Array<ArrayBuffer> = new Uint8Array(0);
  #id = 0;
  #cancelIdle = () => {};

  constructor(runtime: Pick<DeviceRuntime, "net" | "clock">, address: PeerAddress) {
    this.#runtime = runtime;
    this.#address = address;
  }

  /** Sends a call and resolves to the answer object. Rejects if the connection ends, after 8 s, or if the answer is not JSON. */
  call(method: string, params: object): Promise<unknown> {
    const { clock } = this.#runtime;
    if (this.#waiting.size >= MAX_WAITING) return Promise.reject(new Error("the device answers too slowly"));
    const id = ++this.#id;
    this.#cancelIdle();
    this.#cancelIdle = clock.at(after(clock.now(), IDLE_MS), () => this.close());
    return new Promise((resolve, reject) => {
      const cancel = clock.at(after(clock.now(), TIMEOUT_MS), () =>
        waiting.reject(new Error("the device did not answer within 8 s")),
      );
      const settle = (run: () => void) => {
        cancel();
        this.#waiting.delete(id);
        run();
      };
      const waiting: Waiting = {
        resolve: (answer) => settle(() => resolve(answer)),
        reject: (error) => settle(() => reject(error)),
      };
      this.#waiting.set(id, waiting);
      this.#send(encodeUtf8(JSON.stringify({ jsonrpc: "2.0", id, method, params })));
    });
  }

  close(): void {
    this.#fail(new Error("the connection was closed"));
  }

  #send(request: Uint8Array<ArrayBuffer>): void {
    if (this.#opening) this.#opening.push(request);
    else if (this.#socket) this.#socket.write(request);
    else this.#open(request);
  }

  #open(request: Uint8Array<ArrayBuffer>): void {
    const queued = [request];
    this.#opening = queued;
    this.#received = new Uint8Array(0);
    const socket = this.#runtime.net.connect(
      this.#address,
      {
        opened: () => {
          if (this.#opening !== queued) return;
          this.#opening = undefined;
          for (const each of queued) socket.write(each);
        },
        received: (bytes) => {
          if (this.#socket === socket) this.#take(bytes);
        },
        drained() {},
        closed: (reason) => {
          if (this.#socket === socket) this.#fail(new Error(`the device closed the connection: ${reason}`));
        },
      },
      { timeoutMs: TIMEOUT_MS },
    );
    this.#socket = socket;
  }

  /** Ends the connection and all calls. */
  #fail(error: Error): void {
    const socket = this.#socket;
    this.#socket = undefined;
    this.#opening = undefined;
    this.#cancelIdle();
    for (const { reject } of [...this.#waiting.values()]) reject(error);
    socket?.close();
  }

  #take(bytes: Uint8Array): void {
    const all = concatBytes([this.#received, bytes]);
    if (all.length > MAX_MESSAGE_BYTES) {
      this.#fail(new Error("the device sent too much"));
      return;
    }
    const { objects, end } = completeObjects(all);
    this.#received = all.slice(end);
    try {
      for (const object of objects) {
        const answer = JSON.parse(decodeUtf8(object)) as { readonly id?: unknown };
        if (typeof answer.id === "number") this.#waiting.get(answer.id)?.resolve(answer);
      }
    } catch {
      this.#fail(new Error("the device sent something that is not JSON"));
    }
  }
}

/** The signs that separate objects; none of them is part of a longer UTF-8 sequence. */
const [OPEN, CLOSE, QUOTE, BACKSLASH] = [0x7b, 0x7d, 0x22, 0x5c];

/** Splits concatenated JSON objects. `end` is the offset behind the last complete one. */
function completeObjects(bytes: Uint8Array): { objects: Uint8Array[]; end: number } {
  const objects: Uint8Array[] = [];
  let [depth, start, end, isText] = [0, 0, 0, false];
  for (let at = 0; at < bytes.length; at++) {
    const sign = bytes[at];
    if (isText) {
      if (sign === BACKSLASH) at++;
      else if (sign === QUOTE) isText = false;
    } else if (sign === QUOTE) isText = true;
    else if (sign === OPEN && depth++ === 0) start = at;
    else if (sign === CLOSE && --depth <= 0) {
      depth = 0;
      end = at + 1;
      objects.push(bytes.subarray(start, end));
    }
  }
  return { objects, end };
}
