import { DecodeError, messageOf, SluiceError } from "../../base/errors.ts";
import type { Log } from "../../base/log.ts";
import { strongRandom } from "../../net/strong-random.ts";
import type { Outbound } from "../../outbound/outbound.ts";
import type { Runtime } from "../../runtime/contract.ts";
import type { EngineSettings, Hold, TransferContent } from "../../transfer/contract.ts";
import { encodeBencode } from "../../wire/bencode-encode.ts";
import { type LiveInfo, liveInfoDict } from "../../wire/live/info.ts";
import { MAX_BYTES_PER_SECOND, MAX_LIVE_FILE_BYTES, MAX_RELAYS } from "../../wire/live/limits.ts";
import { encodeSuccessor } from "../../wire/live/successor.ts";
import { type LiveTransportFile, parseLiveTransportFile } from "../../wire/live/transport-file.ts";
import { programmeOf } from "../input/input-branches.ts";
import { RtmpListeners } from "../input/rtmp-listeners.ts";
import { type LiveInput, type LiveInputDependencies, openLiveInput } from "../input/source.ts";
import { isPublished } from "../input/source-place.ts";
import { startBroadcast } from "./broadcast.ts";
import { broadcastContent, holdSource } from "./broadcast-content.ts";
import type { Broadcast, BroadcastRequest, Broadcasts } from "./broadcast-contract.ts";
import { broadcastFile } from "./broadcast-file.ts";
import { InputHead } from "./broadcast-head.ts";
import { liveInfoFor, PATTERN_SHAPE, PUBLISHED_SHAPE, type StreamShape, shapeOf } from "./broadcast-info.ts";
import { checkedBroadcastName } from "./broadcast-name.ts";
import { type BroadcastIdentity, type IdentityDependencies, inUseError, openIdentity } from "./identity.ts";
import { checkRenditions, type StreamPart, startWithRenditions } from "./renditions.ts";
import { retiredNames, retireKey } from "./rotation.ts";
import { startStandby } from "./standby.ts";
import { isKeptOpen, StandbyInput } from "./standby-input.ts";

/** What broadcasting depends on. */
export interface BroadcastsDependencies
  extends Pick<LiveInputDependencies, "unixMs" | "openFile" | "pipe" | "openEncoder"> {
  readonly runtime: IdentityDependencies["runtime"] & Pick<Runtime, "clock" | "net">;
  readonly settings: Pick<EngineSettings, "dataDir" | "liveWindowMs">;
  readonly log: Log;
  readonly outbound: Pick<Outbound, "open">;
  /** Takes a lock that ends with the process; resolves with undefined if another process holds it. */
  readonly lock: IdentityDependencies["lock"];
  /** Opens the transfer of a stream. Releasing the hold ends the transfer at once and notifies the peers. */
  open(content: TransferContent): Hold;
}

/** With more, none would have enough upload. */
export const MAX_BROADCASTS = 16;
/** How long the bitrate of a source is measured. */
const MEASURE_MS = 3000;
/** A new source must deliver data within this time. */
const FIRST_WAIT_MS = 30_000;
/** Known streams may get data later; permanent errors of their source occur within this time. */
const LATER_WAIT_MS = 2000;

/** What a broadcast shares with the others. */
interface SharedParts extends BroadcastsDependencies {
  readonly rtmp: RtmpListeners;
}

/** A name in use. */
interface Entry {
  readonly isPiped: boolean;
  readonly abort: AbortController;
  /** Undefined while it starts. */
  broadcast: Broadcast | undefined;
  /** Resolves when the broadcast has ended, or failed to start. */
  over: Promise<void>;
}

/** Creates the broadcasts of an engine. It does nothing before the first one is started. */
export function createBroadcasts(dependencies: BroadcastsDependencies): Broadcasts {
  const log = dependencies.log.named("broadcast");
  const rtmp = new RtmpListeners({ runtime: dependencies.runtime, log });
  /** By name in lower case, because some file systems ignore case. */
  const byName = new Map<string, Entry>();
  let isClosed = false;
  const { unixMs, runtime, settings } = dependencies;
  const folders = { files: runtime.files, root: `${settings.dataDir}/broadcasts`, unixMs };

  const begin = async (
    request: BroadcastRequest,
    signal: AbortSignal,
    part?: StreamPart,
  ): Promise<Broadcast> => {
    const { name } = request;
    const folder = `${dependencies.settings.dataDir}/broadcasts/${name}`;
    const isStandby = request.isStandby === true;
    if (isStandby && !(await dependencies.runtime.files.stat(`${folder}/key`)))
      throw missingKeyError(name, dependencies.settings.dataDir);
    if (request.isRotated) await rotate(name, folder);
    const identity = await openIdentity(folder, name, { ...dependencies, log });
    try {
      const parts = { ...dependencies, log, rtmp };
      return await (isStandby
        ? startStandbyFor(request, identity, parts, signal)
        : startSource(request, identity, parts, signal, part));
    } catch (thrown) {
      await identity.close();
      throw thrown;
    }
  };

  const rotate = async (name: string, folder: string) => {
    if (byName.get(name.toLowerCase())?.broadcast) return;
    const unlock = await dependencies.lock(`${folder}/lock`);
    if (!unlock) throw inUseError(name);
    try {
      await retireKey(name, folders);
      log.info("the key is replaced; viewers of the old stream are sent to the new one for 30 days", {
        name,
      });
    } finally {
      unlock();
    }
  };

  /** Sends the viewers of replaced keys to this broadcast, as long as it runs. */
  const startRetired = async (broadcast: Broadcast) => {
    const { request, transportFilePath: successorPath } = broadcast;
    for (const name of await retiredNames(request.name, folders)) {
      const { programme: _, ...same } = { ...request, isLooped: false, isRotated: false };
      const place = { kind: "test-pattern" } as const;
      try {
        const old = await broadcasts.start({
          ...same,
          name,
          place,
          successorPath,
          bytesPerSecond: undefined,
        });
        const stop = () => void old.stop();
        broadcast.ended.then(stop, stop);
      } catch (thrown) {
        log.warn("cannot tell viewers of the old key", { name, reason: messageOf(thrown) });
      }
    }
  };

  const startOne = async (
    requested: BroadcastRequest,
    signal: AbortSignal | undefined,
    part?: StreamPart,
  ): Promise<Broadcast> => {
    const request = checked(requested);
    const key = request.name.toLowerCase();
    if (isClosed) throw new SluiceError("session_stopped", "the engine is stopping");
    if (byName.has(key)) throw new SluiceError("bad_parameter", `${request.name} is being broadcast already`);
    if (byName.size >= MAX_BROADCASTS)
      throw new SluiceError(
        "too_many",
        `broadcast limit reached (${MAX_BROADCASTS}); stop a broadcast first`,
      );
    const isPiped = request.place.kind === "pipe" && !part?.input;
    if (isPiped && [...byName.values()].some((other) => other.isPiped))
      throw new SluiceError("bad_parameter", "standard input is being broadcast already");
    const entry: Entry = {
      isPiped,
      abort: new AbortController(),
      broadcast: undefined,
      over: Promise.resolve(),
    };
    byName.set(key, entry);
    const signals = signal ? [signal, entry.abort.signal] : [entry.abort.signal];
    const starting = begin(request, AbortSignal.any(signals), part);
    const remove = () => void byName.delete(key);
    entry.over = starting.then(({ ended }) => ended).then(remove, remove);
    try {
      entry.broadcast = await starting;
      if (signals.some(({ aborted }) => aborted)) {
        await entry.broadcast.stop();
        throw new SluiceError("cancelled", "the broadcast was cancelled");
      }
      if (!request.isStandby) void startRetired(entry.broadcast);
      return entry.broadcast;
    } catch (thrown) {
      if (!signals.some(({ aborted }) => aborted)) throw thrown;
      throw new SluiceError("cancelled", "the broadcast was cancelled before it started", {
        cause: thrown,
      });
    }
  };

  const broadcasts: Broadcasts = {
    async start(requested, signal) {
      if (!requested.renditions?.length) return startOne(requested, signal);
      checkRenditions(requested);
      return startWithRenditions(requested, signal, {
        clock: runtime.clock,
        log,
        openEncoder: dependencies.openEncoder,
        start: startOne,
      });
    },
    get: (name) => byName.get(name.normalize("NFC").toLowerCase())?.broadcast,
    all: () => [...byName.values()].flatMap(({ broadcast }) => broadcast ?? []),
    async close() {
      isClosed = true;
      const entries = [...byName.values()];
      for (const { abort, broadcast } of entries) {
        abort.abort();
        void broadcast?.stop();
      }
      await Promise.all(entries.map(({ over }) => over));
    },
  };
  return broadcasts;
}

async function startSource(
  request: BroadcastRequest,
  identity: BroadcastIdentity,
  dependencies: SharedParts,
  signal: AbortSignal,
  part?: StreamPart,
): Promise<Broadcast> {
  const { clock } = dependencies.runtime;
  const source = part?.input ?? inputOf(request, identity, dependencies);
  const { programme } = request;
  const input =
    part?.feeds.watch(source, programme) ??
    (programme === undefined ? source : programmeOf(source, programme));
  const head = new InputHead(input, clock);
  let hold: Hold | undefined;
  try {
    const info = identity.info ?? (await newInfo(request, identity, dependencies, head, signal, part));
    if (identity.info) await head.read(LATER_WAIT_MS, 0, signal);
    const file = await saveTransportFile(request, info, identity, dependencies);
    signal.throwIfAborted();
    const { knownPeers } = identity;
    const record = await successorRecord(request, identity, file, dependencies);
    const successor = record && { successor: record };
    const parts = { ...dependencies, request, identity, file, ...successor };
    const content = broadcastContent("source", { ...parts, knownPeers });
    hold = holdSource(dependencies.open, content);
    const grid = part && { grid: part.grid };
    return startBroadcast({ ...parts, ...grid, input: head.rest(), hold });
  } catch (thrown) {
    hold?.release();
    head.close();
    throw thrown;
  }
}

/** Starts a standby for an existing stream, with its layout unchanged. */
async function startStandbyFor(
  request: BroadcastRequest,
  identity: BroadcastIdentity,
  dependencies: SharedParts,
  signal: AbortSignal,
): Promise<Broadcast> {
  if (!identity.info) throw missingKeyError(request.name, dependencies.settings.dataDir);
  const file = await saveTransportFile(request, identity.info, identity, dependencies);
  if (request.place.kind === "file") await (await dependencies.openFile(request.place.path)).close(); // The file exists.
  signal.throwIfAborted();
  const input = new StandbyInput(() => inputOf(request, identity, dependencies), isKeptOpen(request.place));
  return startStandby({
    ...dependencies,
    request,
    identity,
    file,
    input,
    random: strongRandom(dependencies.runtime.randomBytes),
  });
}

/** The error if the key is missing: a new key would be another stream. */
function missingKeyError(name: string, dataDir: string): SluiceError {
  const folder = `${dataDir}/broadcasts/${name}`;
  return new SluiceError(
    "bad_configuration",
    `no key of ${name} for a standby: copy the folder broadcasts/${name} from the machine that broadcasts it to ${folder}, or restore a backup of that machine`,
  );
}

/** Makes the transport file, and saves it with the info dictionary. */
async function saveTransportFile(
  request: BroadcastRequest,
  info: LiveInfo,
  identity: BroadcastIdentity,
  { runtime }: BroadcastsDependencies,
): Promise<LiveTransportFile> {
  if (info.isPrivate !== request.isPrivate)
    throw new SluiceError(
      "bad_parameter",
      `${request.name} is a ${info.isPrivate ? "private" : "public"} stream, which cannot be changed; choose another name`,
    );
  const file = broadcastFile(request, info, identity.sign, runtime);
  await identity.keepInfo(encodeBencode(liveInfoDict(info)));
  await identity.keepTransportFile(file.bytes);
  return file;
}

/** Makes the record that sends viewers to another stream from now on, if the request names one. */
async function successorRecord(
  { successorPath }: BroadcastRequest,
  { sign }: BroadcastIdentity,
  { infohash }: LiveTransportFile,
  { runtime, unixMs }: BroadcastsDependencies,
): Promise<Uint8Array | undefined> {
  if (successorPath === undefined) return undefined;
  const fault = (reason: string) =>
    new SluiceError("bad_parameter", `successor: ${successorPath}: ${reason}`);
  const bytes = await runtime.files.read(successorPath, MAX_LIVE_FILE_BYTES);
  if (!bytes) throw fault("no such file; name the .sluice file of the new stream");
  try {
    const next = parseLiveTransportFile(bytes, runtime.sha1, runtime.ed25519Verifier);
    if (next.infohash === infohash) throw fault("this is the transport file of the same stream");
    const successor = { ...next, publicKey: next.info.publicKey, sinceMs: Math.floor(unixMs()) };
    return encodeSuccessor(successor, infohash, sign);
  } catch (thrown) {
    throw thrown instanceof DecodeError ? fault(thrown.message) : thrown;
  }
}

function inputOf(
  request: BroadcastRequest,
  { streamKey }: BroadcastIdentity,
  dependencies: SharedParts,
): LiveInput {
  const { clock, net } = dependencies.runtime;
  const outbound: LiveInputDependencies["outbound"] =
    request.allowPrivateUrls === false
      ? { open: (url, options) => dependencies.outbound.open(url, { ...options, allowPrivate: false }) }
      : dependencies.outbound;
  return openLiveInput(
    request.place,
    { ...dependencies, clock, net, outbound },
    { isLooped: request.isLooped, streamKey },
  );
}

/** Determines the layout of a new stream from the given rate, or else by measurement. */
async function newInfo(
  request: BroadcastRequest,
  { publicKey }: BroadcastIdentity,
  { settings }: BroadcastsDependencies,
  head: InputHead,
  signal: AbortSignal,
  part: StreamPart | undefined,
): Promise<LiveInfo> {
  const { name, isPrivate, bytesPerSecond } = request;
  const options = { windowSeconds: settings.liveWindowMs / 1000, isPrivate };
  if (request.place.kind === "test-pattern" && !part?.input)
    return liveInfoFor(name, publicKey, PATTERN_SHAPE, options);
  if (isPublished(request.place) && !part?.input) {
    // The user learns the stream key when the broadcast has started, so no program publishes yet.
    await head.read(LATER_WAIT_MS, 0, signal);
    return liveInfoFor(
      name,
      publicKey,
      { ...PUBLISHED_SHAPE, ...(bytesPerSecond && { bytesPerSecond }) },
      options,
    );
  }
  await head.read(part?.waitMs ?? FIRST_WAIT_MS, MEASURE_MS, signal);
  if (head.received.length === 0 && (head.hasEnded || bytesPerSecond === undefined))
    throw noDataError(request, head);
  const measured: StreamShape = shapeOf(head.received);
  return liveInfoFor(name, publicKey, { ...measured, ...(bytesPerSecond && { bytesPerSecond }) }, options);
}

/** The error if a new stream cannot start. */
function noDataError({ place }: BroadcastRequest, { hasEnded, problem }: InputHead): SluiceError {
  if (hasEnded && place.kind === "pipe")
    return new SluiceError(
      "start_timeout",
      "no data on standard input: the sending program has ended; see its messages",
    );
  if (hasEnded) return new SluiceError("start_timeout", "the source ended without data");
  const why = problem === undefined ? "" : ` (${problem})`;
  return new SluiceError(
    "start_timeout",
    `no data from the source for ${FIRST_WAIT_MS / 1000} s${why}; start the source first, or give its rate with --bitrate`,
  );
}

/** Validates a request and normalizes its name. Throws `bad_parameter`. */
function checked(request: BroadcastRequest): BroadcastRequest {
  const { uploadLimit = 0, bytesPerSecond = 1, relays, isPrivate } = request;
  const fault = (message: string) => new SluiceError("bad_parameter", message);
  if (!(uploadLimit >= 0)) throw fault(`upload limit: expected bytes a second, not ${uploadLimit}`);
  if (!(bytesPerSecond >= 1 && bytesPerSecond <= MAX_BYTES_PER_SECOND))
    throw fault(`rate: expected 1 to ${MAX_BYTES_PER_SECOND} bytes a second, not ${bytesPerSecond}`);
  if (relays.length > MAX_RELAYS) throw fault(`expected at most ${MAX_RELAYS} relays, not ${relays.length}`);
  if (isPrivate && relays.length === 0)
    throw fault("a private stream is sent to its relays only: name at least one");
  if (request.isRotated && (request.isStandby || request.successorPath !== undefined))
    throw fault("rotate: not together with standby or successor");
  if (request.isLooped && request.place.kind !== "file") throw fault("only a file can be looped");
  return { ...request, name: checkedBroadcastName(request.name) };
}
