import { messageOf, SluiceError } from "../../base/errors.ts";
import type { Log } from "../../base/log.ts";
import { SegmentGrid } from "../../media/segment-grid.ts";
import type { Clock } from "../../runtime/contract.ts";
import { MAX_VARIANTS } from "../../wire/live/limits.ts";
import type { LiveVariant } from "../../wire/live/variants.ts";
import { encodedInputs } from "../input/encoded-input.ts";
import { InputBranches, programmeOf } from "../input/input-branches.ts";
import type { LiveInput } from "../input/source.ts";
import type { RunEncoder } from "../input/source-feed.ts";
import { isPublished } from "../input/source-place.ts";
import type { Broadcast, BroadcastRequest, RenditionRequest } from "./broadcast-contract.ts";
import { InputHead } from "./broadcast-head.ts";
import { qualityOf, SEGMENT_MS } from "./broadcast-info.ts";

/** What the streams of one broadcast share. */
export interface StreamPart {
  readonly grid: SegmentGrid;
  readonly feeds: StreamFeeds;
  /** Where the packets come from; undefined: from the place of the request. */
  readonly input?: LiveInput;
  /** How long to wait for the first packets, in ms. */
  readonly waitMs?: number;
}

/** The packets of one stream of a broadcast, for the others. */
export class StreamFeeds {
  /** All programmes of the source. */
  readonly whole: InputBranches;
  /** What is broadcast. */
  readonly own: InputBranches;

  constructor(clock: Clock) {
    this.whole = new InputBranches(clock);
    this.own = new InputBranches(clock);
  }

  /** Returns what to broadcast of a source. */
  watch(input: LiveInput, programme: number | undefined): LiveInput {
    const all = this.whole.watch(input);
    return this.own.watch(programme === undefined ? all : programmeOf(all, programme));
  }
}

/** What renditions depend on. */
export interface RenditionsDependencies {
  readonly clock: Clock;
  readonly log: Log;
  /** Finds ffmpeg. Rejects with `bad_configuration`. */
  openEncoder(): Promise<RunEncoder>;
  /** Starts one stream. */
  start(request: BroadcastRequest, signal: AbortSignal | undefined, part: StreamPart): Promise<Broadcast>;
}

/** How long the quality of a stream is measured. */
const MEASURE_MS = 3000;
/** A rendition must deliver data within this time after the broadcast has started. */
const WAIT_MS = 45_000;
/** No program may publish for days. */
const PUBLISH_WAIT_MS = 2 ** 31 - 1;

/**
 * Starts a broadcast with its renditions, each a stream with a name, key and infohash of its own. Resolves when all are on air, and
 * viewers are sent their description; of a source that a program publishes, as soon as the broadcast itself is. They end with the broadcast.
 */
export async function startWithRenditions(
  request: BroadcastRequest,
  signal: AbortSignal | undefined,
  dependencies: RenditionsDependencies,
): Promise<Broadcast> {
  const { clock, log, start, openEncoder } = dependencies;
  const { renditions = [], place } = request;
  const encode = renditions.some(({ kind }) => kind === "encoded") ? await openEncoder() : undefined;
  const grid = new SegmentGrid(SEGMENT_MS);
  const feeds = new StreamFeeds(clock);
  const main = await start({ ...request, renditions: [] }, signal, { grid, feeds });
  const ended = new AbortController();
  const over = () => ended.abort(new SluiceError("session_stopped", "the broadcast has ended"));
  main.ended.then(over, over);
  const isLater = isPublished(place);
  const waitMs = isLater ? PUBLISH_WAIT_MS : WAIT_MS;
  const starting = startAll({ request, main, grid, feeds, encode, waitMs }, ended.signal, dependencies);
  if (isLater) {
    starting.catch((thrown) => {
      if (!ended.signal.aborted)
        log.warn("the broadcast has no renditions", { name: request.name, reason: messageOf(thrown) });
    });
    return main;
  }
  try {
    await starting;
    return main;
  } catch (thrown) {
    await main.stop();
    throw thrown;
  }
}

/** A broadcast that has started, and its parts. */
interface StartedMain {
  readonly request: BroadcastRequest;
  readonly main: Broadcast;
  readonly grid: SegmentGrid;
  readonly feeds: StreamFeeds;
  readonly encode: RunEncoder | undefined;
  readonly waitMs: number;
}

async function startAll(
  { request, main, grid, feeds, encode, waitMs }: StartedMain,
  ended: AbortSignal,
  { clock, log, start }: RenditionsDependencies,
): Promise<void> {
  const { renditions = [] } = request;
  const measure = (of: StreamFeeds) => measuredQuality(of.own.add(), waitMs, clock, ended);
  const own = measure(feeds);
  const sizes = renditions.filter((rendition) => rendition.kind === "encoded");
  const encoded = encode
    ? [...encodedInputs(sizes, () => feeds.own.add(), { clock, log, encode }, ended)]
    : [];
  const inputOf = (rendition: RenditionRequest) => {
    if (rendition.kind === "encoded") return encoded.shift();
    return rendition.kind === "programme" ? feeds.whole.add(rendition.number) : undefined;
  };
  const started = await Promise.all(
    renditions.map(async (rendition, nth) => {
      const part = { grid, feeds: new StreamFeeds(clock), waitMs, ...given(inputOf(rendition)) };
      const quality = measure(part.feeds);
      quality.catch(() => {}); // If the start fails as well, that is the reason.
      const broadcast = await start(requestOf(request, rendition, nth), ended, part);
      const stop = () => void broadcast.stop();
      main.ended.then(stop, stop);
      return { broadcast, variant: { ...(await quality), infohash: broadcast.infohash } };
    }),
  ).catch((thrown) => {
    own.catch(() => {});
    throw thrown;
  });
  const offered = new Map<Broadcast, LiveVariant>([
    [main, await own],
    ...started.map(({ broadcast, variant }) => [broadcast, variant] as const),
  ]);
  await main.offer([...offered.values()]);
  for (const { broadcast } of started)
    broadcast.ended
      .catch((thrown) =>
        log.warn("a rendition has ended", { name: broadcast.request.name, reason: messageOf(thrown) }),
      )
      .then(async () => {
        offered.delete(broadcast);
        if (!ended.aborted) await main.offer([...offered.values()]);
      })
      .catch((thrown) => log.warn("cannot update the qualities", { reason: messageOf(thrown) }));
}

function given(input: LiveInput | undefined): Pick<StreamPart, "input"> {
  return input ? { input } : {};
}

async function measuredQuality(
  tap: LiveInput,
  waitMs: number,
  clock: Clock,
  signal: AbortSignal,
): Promise<LiveVariant> {
  const head = new InputHead(tap, clock);
  try {
    await head.read(waitMs, MEASURE_MS, signal);
    if (head.received.length > 0) return qualityOf(head.received);
    throw new SluiceError("start_timeout", `no data from a rendition for ${waitMs / 1000} s`);
  } finally {
    head.close();
  }
}

/** The request for the stream of a rendition. */
function requestOf(request: BroadcastRequest, rendition: RenditionRequest, nth: number): BroadcastRequest {
  const { isStandby: _, isRotated: _1, successorPath: _2, programme: _3, meta, ...same } = request;
  const label = labelOf(rendition, nth);
  const own = rendition.kind === "source" ? { place: rendition.place } : {};
  const isLooped = request.isLooped && (own.place ?? request.place).kind === "file";
  return {
    ...same,
    ...own,
    isLooped,
    name: `${request.name}.${label}`,
    meta: { ...meta, title: `${meta.title ?? request.name} (${label})`, quality: label },
    bytesPerSecond: rendition.kind === "encoded" ? Math.ceil(rendition.bitsPerSecond / 8) : undefined,
    manifests: [],
    renditions: [],
  };
}

/** Distinguishes the renditions of a broadcast, at every start alike. */
function labelOf(rendition: RenditionRequest, nth: number): string {
  switch (rendition.kind) {
    case "encoded":
      return `${rendition.height}p`;
    case "programme":
      return `programme-${rendition.number}`;
    case "source":
      return `variant-${nth + 1}`;
  }
}

/** Throws `bad_parameter` if the renditions of a request cannot be broadcast together. */
export function checkRenditions({ name, renditions = [], isStandby }: BroadcastRequest): void {
  const fault = (why: string) => new SluiceError("bad_parameter", `renditions: ${why}`);
  if (renditions.length >= MAX_VARIANTS)
    throw fault(`expected at most ${MAX_VARIANTS - 1} besides the stream itself, got ${renditions.length}`);
  if (renditions.length > 0 && isStandby)
    throw fault("not together with standby: run the standby without renditions");
  const labels = renditions.map(labelOf);
  const repeated = labels.find((label, index) => labels.indexOf(label) !== index);
  if (repeated) throw fault(`${repeated} is listed twice`);
  if (name.length + Math.max(0, ...labels.map(({ length }) => length + 1)) > 64)
    throw fault("choose a shorter name, because the renditions add theirs to it");
}
