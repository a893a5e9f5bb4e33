import type { PeerAddress } from "../base/address.ts";
import { DecodeError } from "../base/errors.ts";
import { after, type Instant } from "../base/time.ts";
import type { Clock, Runtime, TcpSocket } from "../runtime/contract.ts";
import { type CastMessage, CastMessageReader, encodeCastMessage } from "../wire/cast-message.ts";

/** The channels of Google Cast. */
export const CAST = {
  connection: "urn:x-cast:com.google.cast.tp.connection",
  heartbeat: "urn:x-cast:com.google.cast.tp.heartbeat",
  receiver: "urn:x-cast:com.google.cast.receiver",
  media: "urn:x-cast:com.google.cast.media",
} as const;

/** The name of this engine on the channels. */
const SENDER = "sender-sluice";
/** The device itself, in contrast to the application that it runs. */
export const DEVICE = "receiver-0";
const CONNECT_MS = 5_000;
/** Starting the application and loading a stream take a few seconds each. */
const ANSWER_MS = 20_000;
/** The device closes a connection without heartbeats after about ten seconds. */
const HEARTBEAT_MS = 5_000;
/** A device that has sent nothing for this long, not even answers to heartbeats, is gone. */
const SILENCE_MS = 15_000;
/** The connection is closed this long after the last call; the next call opens another one. */
const IDLE_MS = 60_000;
/** Calls that wait for an answer. */
const MAX_WAITING = 32;

/** A JSON message of a device. */
export type CastPayload = Readonly<Record<string, unknown>>;

type CastRuntime = Pick<Runtime, "connectTls" | "clock">;

/** One TLS connection to a Chromecast. */
export class CastChannel {
  readonly #clock: Clock;
  readonly #socket: TcpSocket;
  readonly #reader = new CastMessageReader();
  readonly #waiting = new Map<number, { resolve(payload: CastPayload): void; reject(error: Error): void }>();
  readonly #connectedTo = new Set<string>();
  #requestId = 0;
  #closedBy: Error | undefined;
  #cancelTimer = () => {};
  #heardAt: Instant;
  #calledAt: Instant;

  /** Opens a connection. Rejects if the device does not answer within 5 s. */
  static open(runtime: CastRuntime, address: PeerAddress): Promise<CastChannel> {
    return new Promise((resolve, reject) => {
      const channel: CastChannel = new CastChannel(runtime, address, () => resolve(channel), reject);
    });
  }

  private constructor(
    { connectTls, clock }: CastRuntime,
    address: PeerAddress,
    opened: () => void,
    failed: (error: Error) => void,
  ) {
    this.#clock = clock;
    this.#heardAt = this.#calledAt = clock.now();
    const handlers = {
      opened: () => {
        this.#heardAt = this.#calledAt = clock.now();
        this.#beat();
        opened();
      },
      received: (bytes: Uint8Array) => this.#received(bytes),
      drained() {},
      closed: (reason: string) => {
        const error = new Error(`the device closed the connection: ${reason}`);
        this.#close(error);
        failed(error);
      },
    };
    this.#socket = connectTls(address, handlers, { timeoutMs: CONNECT_MS });
  }

  get isOpen(): boolean {
    return this.#closedBy === undefined;
  }

  /**
   * Sends a request and resolves to the answer with the same id. Connects to `destination` first. Rejects after 20 s, or if the connection
   * ends.
   */
  request(namespace: string, destination: string, payload: CastPayload): Promise<CastPayload> {
    if (this.#closedBy) return Promise.reject(this.#closedBy);
    if (this.#waiting.size >= MAX_WAITING) return Promise.reject(new Error("the device answers too slowly"));
    this.#calledAt = this.#clock.now();
    if (!this.#connectedTo.has(destination)) {
      this.#connectedTo.add(destination);
      this.#send(CAST.connection, destination, { type: "CONNECT" });
    }
    const requestId = ++this.#requestId;
    return new Promise((resolve, reject) => {
      const cancel = this.#clock.at(after(this.#clock.now(), ANSWER_MS), () =>
        settle(() => reject(new Error(`the device did not answer ${String(payload.type)}`))),
      );
      const settle = (run: () => void) => {
        cancel();
        this.#waiting.delete(requestId);
        run();
      };
      this.#waiting.set(requestId, {
        resolve: (answer) => settle(() => resolve(answer)),
        reject: (error) => settle(() => reject(error)),
      });
      this.#send(namespace, destination, { ...payload, requestId });
    });
  }

  close(): void {
    this.#close(new Error("the connection was closed"));
  }

  #close(error: Error): void {
    if (this.#closedBy) return;
    this.#closedBy = error;
    this.#cancelTimer();
    for (const { reject } of [...this.#waiting.values()]) reject(error);
    this.#socket.close();
  }

  /** Sends a heartbeat, and closes a connection that is silent or not used. */
  #beat(): void {
    const now = this.#clock.now();
    const isSilent = after(this.#heardAt, SILENCE_MS) <= now;
    if (isSilent || after(this.#calledAt, IDLE_MS) <= now) {
      this.#close(new Error(isSilent ? "the device has fallen silent" : "the connection was not used"));
      return;
    }
    this.#send(CAST.heartbeat, DEVICE, { type: "PING" });
    this.#cancelTimer = this.#clock.at(after(now, HEARTBEAT_MS), () => this.#beat());
  }

  #send(namespace: string, destination: string, payload: CastPayload): void {
    const message = { source: SENDER, destination, namespace, payload: JSON.stringify(payload) };
    this.#socket.write(encodeCastMessage(message));
  }

  #received(bytes: Uint8Array): void {
    if (this.#closedBy) return;
    this.#heardAt = this.#clock.now();
    try {
      for (const message of this.#reader.push(bytes)) this.#take(message);
    } catch (thrown) {
      if (!(thrown instanceof DecodeError || thrown instanceof SyntaxError)) throw thrown;
      this.#close(new Error(`the device sent an invalid message: ${thrown.message}`));
    }
  }

  #take({ namespace, source, payload }: CastMessage): void {
    if (payload === "") return; // Authentication, which was not requested.
    const value: unknown = JSON.parse(payload);
    if (typeof value !== "object" || value === null) return;
    const answer = value as CastPayload;
    if (namespace === CAST.heartbeat && answer.type === "PING")
      this.#send(CAST.heartbeat, source, { type: "PONG" });
    if (namespace === CAST.connection && answer.type === "CLOSE") this.#connectedTo.delete(source);
    if (typeof answer.requestId === "number") this.#waiting.get(answer.requestId)?.resolve(answer);
  }
}
