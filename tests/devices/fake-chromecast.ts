import { writeU32 } from "../../src/base/bytes.ts";
import { type CastMessage, CastMessageReader, encodeCastMessage } from "../../src/wire/cast-message.ts";

const RECEIVER = "urn:x-cast:com.google.cast.receiver";
const MEDIA = "urn:x-cast:com.google.cast.media";
const HEARTBEAT = "urn:x-cast:com.google.cast.tp.heartbeat";
const CONNECTION = "urn:x-cast:com.google.cast.tp.connection";
const AUTHENTICATION = "urn:x-cast:com.google.cast.tp.deviceauth";
const APPLICATION = "CC1AD845";
/** A `DeviceAuthMessage` of cast_channel.proto whose response has an empty signature and certificate. */
const AUTHENTICATED = [0x12, 4, 0x0a, 0, 0x12, 0];

interface Loaded {
  readonly media: Record<string, unknown>;
  state: string;
  time: number;
}

/**
 * A Chromecast without a screen: it launches the Default Media Receiver, loads media, and keeps its state. `pychromecast` accepts it (see
 * tests/interop/chromecast.test.ts). One object serves all connections.
 */
export class FakeChromecast {
  /** The `LOAD` requests, newest last. */
  readonly loads: Record<string, unknown>[] = [];
  /** The types of all messages, oldest first. */
  readonly heard: string[] = [];
  loaded: Loaded | undefined;
  volume = 0.5;
  durationSeconds: number | undefined = 120;
  /** Answers `LOAD` with an error. */
  refusesLoads = false;
  /** Answers nothing, not even heartbeats. */
  isSilent = false;
  #isLaunched = false;
  #launches = 0;

  /** Serves one connection: returns a function that takes its bytes. */
  connection(write: (bytes: Uint8Array) => void): (bytes: Uint8Array) => void {
    const reader = new CastMessageReader();
    return (bytes) => {
      for (const message of reader.push(bytes)) {
        const payload = JSON.parse(message.payload || "{}") as Record<string, unknown>;
        this.heard.push(String(payload.type));
        if (this.isSilent) continue;
        if (message.namespace === AUTHENTICATION) {
          write(authenticated(message));
          continue;
        }
        const answer = this.#answer(message, payload);
        if (answer === undefined) continue;
        const { source, destination, namespace } = message;
        const text = JSON.stringify({ ...answer, requestId: payload.requestId ?? 0 });
        write(encodeCastMessage({ source: destination, destination: source, namespace, payload: text }));
      }
    };
  }

  #answer({ namespace, destination }: CastMessage, payload: Record<string, unknown>): object | undefined {
    switch (namespace) {
      case HEARTBEAT:
        return payload.type === "PING" ? { type: "PONG" } : undefined;
      case CONNECTION:
        return undefined;
      case RECEIVER:
        return this.#receiver(payload);
      case MEDIA:
        return destination === this.#transportId ? this.#media(payload) : { type: "INVALID_REQUEST" };
      default:
        return { type: "INVALID_REQUEST" };
    }
  }

  get #transportId(): string {
    return `web-${this.#launches}`;
  }

  #receiver(payload: Record<string, unknown>): object {
    if (payload.type === "LAUNCH") {
      if (payload.appId !== APPLICATION) return { type: "LAUNCH_ERROR", reason: "NOT_FOUND" };
      if (!this.#isLaunched) this.#launches++;
      this.#isLaunched = true;
    }
    if (payload.type === "STOP") {
      this.#isLaunched = false;
      this.loaded = undefined;
    }
    if (payload.type === "SET_VOLUME") this.volume = (payload.volume as { level: number }).level;
    const application = {
      appId: APPLICATION,
      displayName: "Default Media Receiver",
      namespaces: [{ name: MEDIA }],
      sessionId: `session-${this.#launches}`,
      statusText: "Default Media Receiver",
      transportId: this.#transportId,
    };
    const volume = { controlType: "attenuation", level: this.volume, muted: false, stepInterval: 0.05 };
    return {
      type: "RECEIVER_STATUS",
      status: { applications: this.#isLaunched ? [application] : [], volume },
    };
  }

  #media(payload: Record<string, unknown>): object {
    if (payload.type === "LOAD") {
      if (this.refusesLoads) return { type: "LOAD_FAILED" };
      this.loads.push(payload);
      this.loaded = {
        media: payload.media as Record<string, unknown>,
        state: "PLAYING",
        time: Number(payload.currentTime ?? 0),
      };
    } else if (payload.type !== "GET_STATUS") {
      if (this.loaded === undefined || payload.mediaSessionId !== this.#launches)
        return { type: "INVALID_PLAYER_STATE" };
      if (payload.type === "PAUSE") this.loaded.state = "PAUSED";
      if (payload.type === "PLAY") this.loaded.state = "PLAYING";
      if (payload.type === "SEEK") this.loaded.time = Number(payload.currentTime);
      if (payload.resumeState === "PLAYBACK_START") this.loaded.state = "PLAYING";
      if (payload.type === "STOP") this.loaded = undefined;
    }
    if (this.loaded === undefined) return { type: "MEDIA_STATUS", status: [] };
    const { state, time, media } = this.loaded;
    const status = {
      mediaSessionId: this.#launches,
      playbackRate: 1,
      playerState: state,
      currentTime: time,
      supportedMediaCommands: 15,
      volume: { level: this.volume, muted: false },
      // Like a real one, it repeats the description of the media only when it changes.
      ...(payload.type === "LOAD" && { media: { ...media, duration: this.durationSeconds } }),
    };
    return { type: "MEDIA_STATUS", status: [status] };
  }
}

/** Answers a device authentication, without which VLC does not begin. Its payload is binary: field 7 instead of field 6. */
function authenticated({ source, destination, namespace }: CastMessage): Uint8Array {
  const text = encodeCastMessage({ source: destination, destination: source, namespace, payload: "" });
  const [payloadType, payload] = [
    [0x28, 1],
    [0x3a, AUTHENTICATED.length, ...AUTHENTICATED],
  ];
  const message = Uint8Array.from([...text.subarray(0, -4), ...payloadType!, ...payload!]);
  writeU32(message, 0, message.length - 4);
  return message;
}
