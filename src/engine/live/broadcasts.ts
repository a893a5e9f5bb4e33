import { SluiceError } from "../../base/errors.ts";
import type { Log } from "../../base/log.ts";
import type { Outbound } from "../../outbound/outbound.ts";
import type { Runtime } from "../../runtime/contract.ts";
import { encodeBencode } from "../../wire/bencode-encode.ts";
import { type LiveInfo, liveInfoDict } from "../../wire/live-info.ts";
import { MAX_BYTES_PER_SECOND, MAX_RELAYS } from "../../wire/live-limits.ts";
import type { LiveTransportFile } from "../../wire/live-transport.ts";
import type { EngineSettings, TransferContent } from "../contract.ts";
import type { Hold } from "../holds.ts";
import { strongRandom } from "../reach/strong-random.ts";
import { startBroadcast } from "./broadcast.ts";
import { broadcastContent, holdSource } from "./broadcast-content.ts";
import type { Broadcast, BroadcastRequest, Broadcasts } from "./broadcast-contract.ts";
import { broadcastFile } from "./broadcast-file.ts";
import { InputHead } from "./broadcast-head.ts";
import { liveInfoFor, PATTERN_SHAPE, type StreamShape, shapeOf } from "./broadcast-info.ts";
import { checkedBroadcastName } from "./broadcast-name.ts";
import { type BroadcastIdentity, type IdentityParts, openIdentity } from "./identity.ts";
import { type LiveInput, type LiveInputParts, openLiveInput } from "./source.ts";
import { startStandby } from "./standby.ts";
import { isKeptWarm, StandbyInput } from "./standby-input.ts";

/** What broadcasting needs. */
export interface BroadcastsParts extends Pick<LiveInputParts, "unixMs" | "openFile" | "pipe"> {
  readonly runtime: IdentityParts["runtime"] & Pick<Runtime, "clock" | "net">;
  readonly settings: Pick<EngineSettings, "dataDir" | "liveWindowMs">;
  readonly log: Log;
  readonly outbound: Pick<Outbound, "open">;
  /** Takes a lock that ends with the process; undefined where another process holds it. */
  readonly lock: IdentityParts["lock"];
  /** Holds the transfer of a stream. Its release ends it at once, with a word to the peers. */
  open(content: TransferContent): Hold;
}

/** More at once would have no upload left for any. */
export const MAX_BROADCASTS = 16;
/** How long a source is listened to before its rate is taken for known. */
const MEASURE_MS = 3000;
/** A source that is new must say something within so long. */
const FIRST_WAIT_MS = 30_000;
/** One that was broadcast before may come later; what is plainly wrong shows by then. */
const LATER_WAIT_MS = 2000;

/** A name that is taken. */
interface Entry {
  readonly isPiped: boolean;
  readonly abort: AbortController;
  /** Undefined while it starts. */
  broadcast: Broadcast | undefined;
  /** Resolves when it has ended, or has not begun. */
  over: Promise<void>;
}

/** All broadcasts of this engine. Nothing happens before one is started. */
export function createBroadcasts(parts: BroadcastsParts): Broadcasts {
  const log = parts.log.named("broadcast");
  /** By name in lower case, as some file systems have it. */
  const known = new Map<string, Entry>();
  let isClosed = false;

  const begin = async (request: BroadcastRequest, signal: AbortSignal): Promise<Broadcast> => {
    const { name } = request;
    const folder = `${parts.settings.dataDir}/broadcasts/${name}`;
    const isStandby = request.isStandby === true;
    if (isStandby && !(await parts.runtime.files.stat(`${folder}/key`)))
      throw nothingToStandBy(name, parts.settings.dataDir);
    const identity = await openIdentity(folder, name, { ...parts, log });
    try {
      const start = isStandby ? standByWith : startWith;
      return await start(request, identity, { ...parts, log }, signal);
    } catch (thrown) {
      await identity.close();
      throw thrown;
    }
  };

  return {
    async start(asked, signal) {
      const request = checked(asked);
      const key = request.name.toLowerCase();
      if (isClosed) throw new SluiceError("session_stopped", "the engine is stopping");
      if (known.has(key))
        throw new SluiceError("bad_parameter", `${request.name} is being broadcast already`);
      if (known.size >= MAX_BROADCASTS)
        throw new SluiceError("too_many", `${MAX_BROADCASTS} streams are being broadcast; stop one first`);
      const isPiped = request.place.kind === "pipe";
      if (isPiped && [...known.values()].some((other) => other.isPiped))
        throw new SluiceError("bad_parameter", "what is piped in is being broadcast already");
      const entry: Entry = {
        isPiped,
        abort: new AbortController(),
        broadcast: undefined,
        over: Promise.resolve(),
      };
      known.set(key, entry);
      const signals = signal ? [signal, entry.abort.signal] : [entry.abort.signal];
      const starting = begin(request, AbortSignal.any(signals));
      const forget = () => void known.delete(key);
      entry.over = starting.then(({ ended }) => ended).then(forget, forget);
      try {
        entry.broadcast = await starting;
        if (signals.some(({ aborted }) => aborted)) {
          await entry.broadcast.stop();
          throw new SluiceError("cancelled", "nobody wants it any more");
        }
        return entry.broadcast;
      } catch (thrown) {
        if (!signals.some(({ aborted }) => aborted)) throw thrown;
        throw new SluiceError("cancelled", "the broadcast was given up before it began", { cause: thrown });
      }
    },
    get: (name) => known.get(name.normalize("NFC").toLowerCase())?.broadcast,
    all: () => [...known.values()].flatMap(({ broadcast }) => broadcast ?? []),
    async close() {
      isClosed = true;
      const entries = [...known.values()];
      for (const { abort, broadcast } of entries) {
        abort.abort();
        void broadcast?.stop();
      }
      await Promise.all(entries.map(({ over }) => over));
    },
  };
}

async function startWith(
  request: BroadcastRequest,
  identity: BroadcastIdentity,
  parts: BroadcastsParts,
  signal: AbortSignal,
): Promise<Broadcast> {
  const { clock } = parts.runtime;
  const input = inputOf(request, parts);
  const head = new InputHead(input, clock);
  let hold: Hold | undefined;
  try {
    const info = identity.info ?? (await newInfo(request, identity, parts, head, signal));
    if (identity.info) await head.read(LATER_WAIT_MS, 0, signal);
    const file = await keptFile(request, info, identity, parts);
    signal.throwIfAborted();
    const { knownPeers } = identity;
    const content = broadcastContent("source", { ...parts, request, identity, file, knownPeers });
    hold = holdSource(parts.open, content);
    return startBroadcast({ ...parts, request, identity, file, input: head.rest(), hold });
  } catch (thrown) {
    hold?.release();
    head.close();
    throw thrown;
  }
}

/** Stands by for a stream that was begun before: nothing is decided anew. */
async function standByWith(
  request: BroadcastRequest,
  identity: BroadcastIdentity,
  parts: BroadcastsParts,
  signal: AbortSignal,
): Promise<Broadcast> {
  if (!identity.info) throw nothingToStandBy(request.name, parts.settings.dataDir);
  const file = await keptFile(request, identity.info, identity, parts);
  if (request.place.kind === "file") await (await parts.openFile(request.place.path)).close(); // It is there.
  signal.throwIfAborted();
  const input = new StandbyInput(() => inputOf(request, parts), isKeptWarm(request.place));
  return startStandby({
    ...parts,
    request,
    identity,
    file,
    input,
    random: strongRandom(parts.runtime.randomBytes),
  });
}

/** A key that is made here would be that of another stream. */
function nothingToStandBy(name: string, dataDir: string): SluiceError {
  const folder = `${dataDir}/broadcasts/${name}`;
  return new SluiceError(
    "bad_configuration",
    `nothing of ${name} is here to stand by with: copy the folder broadcasts/${name} of the machine that broadcasts it to ${folder}, or restore a backup of that machine`,
  );
}

/** The transport file, kept with what it is made of. */
async function keptFile(
  request: BroadcastRequest,
  info: LiveInfo,
  identity: BroadcastIdentity,
  { runtime }: BroadcastsParts,
): Promise<LiveTransportFile> {
  if (info.isPrivate !== request.isPrivate)
    throw new SluiceError(
      "bad_parameter",
      `${request.name} was begun as a ${info.isPrivate ? "private" : "public"} stream and stays one; take another name`,
    );
  const file = broadcastFile(request, info, identity.sign, runtime);
  await identity.keepInfo(encodeBencode(liveInfoDict(info)));
  await identity.keepTransportFile(file.bytes);
  return file;
}

function inputOf(request: BroadcastRequest, parts: BroadcastsParts): LiveInput {
  const { clock, net } = parts.runtime;
  const outbound: LiveInputParts["outbound"] =
    request.allowPrivateUrls === false
      ? { open: (url, options) => parts.outbound.open(url, { ...options, allowPrivate: false }) }
      : parts.outbound;
  return openLiveInput(request.place, { ...parts, clock, net, outbound }, { isLooped: request.isLooped });
}

/** How a new stream is cut: by what its owner says, else by what comes. */
async function newInfo(
  request: BroadcastRequest,
  { publicKey }: BroadcastIdentity,
  { settings }: BroadcastsParts,
  head: InputHead,
  signal: AbortSignal,
): Promise<LiveInfo> {
  const { name, isPrivate, bytesPerSecond } = request;
  const options = { windowSeconds: settings.liveWindowMs / 1000, isPrivate };
  if (request.place.kind === "test-pattern") return liveInfoFor(name, publicKey, PATTERN_SHAPE, options);
  await head.read(FIRST_WAIT_MS, MEASURE_MS, signal);
  if (head.came.length === 0 && (head.isOver || bytesPerSecond === undefined))
    throw nothingCame(request, head);
  const measured: StreamShape = shapeOf(head.came);
  return liveInfoFor(name, publicKey, { ...measured, ...(bytesPerSecond && { bytesPerSecond }) }, options);
}

/** Why a new stream does not begin. */
function nothingCame({ place }: BroadcastRequest, { isOver, problem }: InputHead): SluiceError {
  if (isOver && place.kind === "pipe")
    return new SluiceError(
      "start_timeout",
      "nothing was piped in: the program that should send has ended, and has most likely said why",
    );
  if (isOver) return new SluiceError("start_timeout", "the source has ended, and nothing came from it");
  const why = problem === undefined ? "" : ` (${problem})`;
  return new SluiceError(
    "start_timeout",
    `nothing came from the source for ${FIRST_WAIT_MS / 1000} s${why}; a new stream begins when its source does, or when its rate is said (--bitrate)`,
  );
}

/** The request with its name as it is used. Throws `bad_parameter`. */
function checked(request: BroadcastRequest): BroadcastRequest {
  const { uploadLimit = 0, bytesPerSecond = 1, relays, isPrivate } = request;
  const fault = (message: string) => new SluiceError("bad_parameter", message);
  if (!(uploadLimit >= 0)) throw fault(`upload limit: expected bytes a second, not ${uploadLimit}`);
  if (!(bytesPerSecond >= 1 && bytesPerSecond <= MAX_BYTES_PER_SECOND))
    throw fault(`rate: expected 1 to ${MAX_BYTES_PER_SECOND} bytes a second, not ${bytesPerSecond}`);
  if (relays.length > MAX_RELAYS) throw fault(`expected at most ${MAX_RELAYS} relays, not ${relays.length}`);
  if (isPrivate && relays.length === 0)
    throw fault("a private stream is given to its relays alone: name at least one");
  if (request.isLooped && request.place.kind !== "file") throw fault("only a file can be looped");
  return { ...request, name: checkedBroadcastName(request.name) };
}
