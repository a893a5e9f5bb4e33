import { concatBytes, readU32, writeU32 } from "../../base/bytes.ts";
import { DecodeError } from "../../base/errors.ts";
import { type AmfValue, decodeAmf, encodeAmf } from "../../wire/rtmp/amf0.ts";
import { encodeRtmpMessage, RTMP_TYPE, RtmpChunkReader, type RtmpMessage } from "../../wire/rtmp/chunks.ts";

/** What a connection of a publisher tells. Called while bytes are received, in their order. */
export interface PublicationHandlers {
  /** Sends bytes to the publisher. */
  send(bytes: Uint8Array): void;
  /** The publisher wants to publish `key` in `app`. Returns why not; undefined to accept. */
  publish(app: string, key: string): string | undefined;
  /** The body of an FLV tag. `timestampMs` is its decode time modulo 2^32. */
  media(kind: "audio" | "video", timestampMs: number, body: Uint8Array): void;
  /** The publisher has ended the stream, or was refused: close the connection after the sent bytes. */
  ended(): void;
}

/** C1 and C2 (RTMP 1.0, section 5.2). */
const HANDSHAKE_BYTES = 1536;
const VERSION = 3;
/** Commands before the publisher is accepted are short. */
const MAX_COMMAND_BYTES = 64 * 1024;
/** A keyframe of 50 Mbit/s video is about 2 MB. */
const MAX_MESSAGE_BYTES = 8 * 1024 * 1024;
/** Chunk size of our own messages: each fits one chunk. */
const CHUNK_BYTES = 4096;
/** The publisher may have so many unacknowledged bytes. */
const WINDOW_BYTES = 2_500_000;
/** The only stream of a connection. */
const STREAM_ID = 1;
/** Chunk streams, as is customary. */
const CONTROL_CHUNKS = 2;
const COMMAND_CHUNKS = 3;
const STATUS_CHUNKS = 5;

/** The receiving side of RTMP for one publisher: handshake, commands, media ("Adobe's Real Time Messaging Protocol" 1.0). */
export class Publication {
  readonly #handlers: PublicationHandlers;
  readonly #randomBytes: (length: number) => Uint8Array;
  readonly #chunks = new RtmpChunkReader(MAX_COMMAND_BYTES);
  /** Received bytes of the handshake; undefined after it. */
  #handshake: Uint8Array | undefined = new Uint8Array(0);
  #hasAnswered = false;
  #app = "";
  #isPublished = false;
  #hasEnded = false;
  #receivedBytes = 0;
  #acknowledgedBytes = 0;
  #windowBytes = WINDOW_BYTES;

  constructor(handlers: PublicationHandlers, randomBytes: (length: number) => Uint8Array) {
    this.#handlers = handlers;
    this.#randomBytes = randomBytes;
  }

  /** True from the accepted request to publish until its end. */
  get isPublished(): boolean {
    return this.#isPublished && !this.#hasEnded;
  }

  /** Takes received bytes, which it does not keep. Throws {@link DecodeError}. */
  receive(bytes: Uint8Array): void {
    if (this.#hasEnded) return;
    const rest = this.#handshake ? this.#shakeHands(concatBytes([this.#handshake, bytes])) : bytes;
    if (!rest) return;
    this.#receivedBytes += rest.length;
    for (const message of this.#chunks.push(rest)) {
      if (!this.#hasEnded) this.#process(message);
    }
    this.#acknowledge();
  }

  /** Ends the stream with an error that the publisher shows to its user. */
  refuse(reason: string): void {
    if (this.#hasEnded) return;
    this.#status("error", "NetStream.Publish.BadName", reason);
    this.#end();
  }

  /** Answers C0 and C1, waits for C2, and returns the bytes after it. */
  #shakeHands(received: Uint8Array): Uint8Array | undefined {
    this.#handshake = received;
    if (received.length > 0 && received[0] !== VERSION)
      throw new DecodeError("RTMP", 0, `expected version ${VERSION}, got ${received[0]}`);
    const c2 = 1 + HANDSHAKE_BYTES;
    if (received.length >= c2 && !this.#hasAnswered) {
      this.#hasAnswered = true;
      const s1 = new Uint8Array(HANDSHAKE_BYTES);
      s1.set(this.#randomBytes(HANDSHAKE_BYTES - 8), 8);
      this.#handlers.send(concatBytes([Uint8Array.of(VERSION), s1, received.subarray(1, c2)]));
    }
    if (received.length < c2 + HANDSHAKE_BYTES) return undefined;
    this.#handshake = undefined;
    return received.subarray(c2 + HANDSHAKE_BYTES);
  }

  #process(message: RtmpMessage): void {
    const { type, payload } = message;
    switch (type) {
      case RTMP_TYPE.windowSize:
        // A small window would cost an answer for each byte.
        if (payload.length >= 4) this.#windowBytes = Math.max(CHUNK_BYTES, readU32(payload, 0));
        return;
      case RTMP_TYPE.audio:
      case RTMP_TYPE.video:
        this.#media(type, message.timestamp, payload);
        return;
      case RTMP_TYPE.aggregate:
        this.#aggregate(message);
        return;
      case RTMP_TYPE.command:
        this.#command(decodeAmf(payload));
        return;
      case RTMP_TYPE.commandAmf3:
        // The first byte means that AMF0 follows (section 7.1.1).
        this.#command(decodeAmf(payload.subarray(1)));
    }
  }

  #media(type: number, timestampMs: number, body: Uint8Array): void {
    if (!this.#isPublished) throw new DecodeError("RTMP", 0, "media before the publisher was accepted");
    this.#handlers.media(type === RTMP_TYPE.video ? "video" : "audio", timestampMs, body);
  }

  /** Several messages in one, as FLV tags (section 7.1.6). */
  #aggregate({ timestamp, payload }: RtmpMessage): void {
    let offset: number | undefined;
    for (let at = 0; at + 11 <= payload.length && !this.#hasEnded; ) {
      const length = readU32(payload, at) & 0xff_ffff;
      const time = ((payload[at + 7]! << 24) | (readU32(payload, at + 3) & 0xff_ffff)) >>> 0;
      offset ??= timestamp - time;
      const body = payload.subarray(at + 11, at + 11 + length);
      if (body.length < length) return;
      const type = payload[at]!;
      if (type === RTMP_TYPE.audio || type === RTMP_TYPE.video)
        this.#media(type, (time + offset) >>> 0, body);
      at += 11 + length + 4;
    }
  }

  #command([name, id, details, key]: readonly AmfValue[]): void {
    switch (name) {
      case "connect":
        this.#connect(id, details);
        return;
      case "createStream":
        this.#reply("_result", [id, null, STREAM_ID]);
        return;
      case "releaseStream":
      case "FCPublish":
        this.#reply("_result", [id, null, undefined]);
        return;
      case "publish":
        this.#publish(typeof key === "string" ? key : "");
        return;
      case "play":
        this.refuse("this address receives streams; watch this one with its Sluice link");
        return;
      case "FCUnpublish":
      case "deleteStream":
      case "closeStream":
        if (this.#isPublished) this.#end();
    }
  }

  #connect(id: AmfValue, details: AmfValue): void {
    const { app } =
      typeof details === "object" && details !== null ? (details as Record<string, AmfValue>) : {};
    this.#app = typeof app === "string" ? withoutQuery(app) : "";
    this.#control(RTMP_TYPE.windowSize, numberBytes(WINDOW_BYTES));
    // 2: the publisher chooses whether the limit holds.
    this.#control(RTMP_TYPE.peerBandwidth, concatBytes([numberBytes(WINDOW_BYTES), Uint8Array.of(2)]));
    this.#control(RTMP_TYPE.chunkSize, numberBytes(CHUNK_BYTES));
    const server = { fmsVer: "FMS/3,0,1,123", capabilities: 31 };
    const code = "NetConnection.Connect.Success";
    this.#reply("_result", [
      id,
      server,
      { level: "status", code, description: "connected", objectEncoding: 0 },
    ]);
  }

  #publish(key: string): void {
    if (this.#isPublished) return;
    const refusal = this.#handlers.publish(this.#app, withoutQuery(key));
    if (refusal !== undefined) {
      this.refuse(refusal);
      return;
    }
    this.#isPublished = true;
    this.#chunks.limitBytes = MAX_MESSAGE_BYTES;
    this.#control(RTMP_TYPE.userControl, concatBytes([new Uint8Array(2), numberBytes(STREAM_ID)])); // Stream begin.
    this.#status("status", "NetStream.Publish.Start", "publishing");
  }

  #end(): void {
    this.#hasEnded = true;
    this.#handlers.ended();
  }

  /** Tells how much has arrived, once per half a window (section 5.4.3). */
  #acknowledge(): void {
    if (this.#hasEnded || this.#receivedBytes - this.#acknowledgedBytes < this.#windowBytes / 2) return;
    this.#acknowledgedBytes = this.#receivedBytes;
    this.#control(RTMP_TYPE.acknowledgement, numberBytes(this.#receivedBytes));
  }

  #status(level: "status" | "error", code: string, description: string): void {
    const payload = encodeAmf(["onStatus", 0, null, { level, code, description }]);
    this.#send({ type: RTMP_TYPE.command, streamId: STREAM_ID, timestamp: 0, payload }, STATUS_CHUNKS);
  }

  #reply(name: string, values: readonly AmfValue[]): void {
    const payload = encodeAmf([name, ...values]);
    this.#send({ type: RTMP_TYPE.command, streamId: 0, timestamp: 0, payload }, COMMAND_CHUNKS);
  }

  #control(type: number, payload: Uint8Array): void {
    this.#send({ type, streamId: 0, timestamp: 0, payload }, CONTROL_CHUNKS);
  }

  #send(message: RtmpMessage, chunkStream: number): void {
    this.#handlers.send(encodeRtmpMessage(message, chunkStream, CHUNK_BYTES));
  }
}

/** Some programs append parameters to names. */
function withoutQuery(name: string): string {
  return name.split("?", 1)[0]!.replace(/\/$/, "");
}

/** Four bytes, big-endian. */
function numberBytes(value: number): Uint8Array {
  const bytes = new Uint8Array(4);
  writeU32(bytes, 0, value % 0x1_0000_0000);
  return bytes;
}
