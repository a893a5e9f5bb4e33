import { SluiceError } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import type { ContentFile, Transfer } from "../engine/contract.ts";
import type { TransferLease } from "../engine/engine.ts";
import type { Config } from "../settings.ts";
import type { Arguments } from "./args.ts";
import { besideAnEngine } from "./beside.ts";
import type { Context } from "./context.ts";
import { type House, openHouse } from "./house.ts";
import { printable } from "./log.ts";
import { refuseRaw, streamBytes, streamUrl } from "./play-stream.ts";
import { findPlayer, playIn } from "./players.ts";
import { ProgressLine } from "./progress.ts";
import { selectorOf } from "./selector.ts";
import { stopSignals } from "./stop-signals.ts";
import { usageError } from "./usage.ts";
import { writeTo } from "./write-to.ts";

type Format = "raw" | "ts";

/** How often the progress line changes. */
const PROGRESS_MS = 500;

/** What one `play` works with. */
interface Playing {
  readonly context: Context;
  readonly house: House;
  readonly progress: ProgressLine;
  readonly transfer: Transfer;
  readonly file: ContentFile;
  readonly format: Format;
  readonly signal: AbortSignal;
}

/** `sluice play`: one thing, in a player, to a file or to standard output. Resolves to the exit code. */
export async function play(context: Context, config: Config, log: Log, args: Arguments): Promise<number> {
  const named = args.operands[0];
  if (named === undefined)
    throw usageError("play: name what to play: a magnet, an infohash, a file or a URL");
  const format = formatOf(args);
  const index = indexOf(args);
  const output = args.flags.get("output");
  // Where nothing can show it, say so before the swarm is joined.
  const player =
    output === undefined ? await findPlayer(context.environment, args.flags.get("player")) : undefined;
  const selector = await selectorOf(named);

  const stop = stopSignals(log);
  const progress = new ProgressLine({
    isTerminal: context.stderr.isTTY === true,
    // A terminal that does not know its width says 0.
    columns: context.stderr.columns || 80,
    write: (text) => void context.stderr.write(text),
  });
  const house = await openHouse({ ...context, config: besideAnEngine(config), log });
  let lease: TransferLease | undefined;
  try {
    lease = await house.engine.acquire(selector, {
      signal: stop.signal,
      allowPrivateUrls: true,
      onProgress: ({ connectedPeers, bytesPerSecondDown }) =>
        progress.show(
          {
            doing: "opening",
            peers: connectedPeers,
            bytesPerSecond: bytesPerSecondDown,
            done: undefined,
            size: undefined,
          },
          performance.now(),
        ),
    });
    const { transfer, selectedFiles } = lease;
    const file = chooseFile(transfer, index ?? selectedFiles?.[0]);
    const isStream = transfer.segmentSource !== undefined;
    if (isStream && args.flags.has("format")) refuseRaw(format);
    const playing: Playing = { context, house, progress, transfer, file, format, signal: stop.signal };
    const showing = setInterval(() => showProgress(playing), PROGRESS_MS);
    try {
      if (typeof output === "string") await (isStream ? writeStream : writeFile)(playing, output);
      else if (player !== undefined) return await playInPlayer(playing, player);
      return 0;
    } finally {
      clearInterval(showing);
    }
  } catch (error) {
    if (!stop.signal.aborted) throw error;
    return 130;
  } finally {
    progress.end();
    lease?.release();
    await house.close();
    stop.release();
  }
}

async function writeFile(playing: Playing, output: string): Promise<void> {
  const { transfer, file, format, context, signal } = playing;
  const bytes =
    format === "raw"
      ? transfer.source(file.index).open({ start: 0, end: file.size })
      : await transportStream(transfer, file.index, signal);
  const written = await writeTo(bytes, output, context.stdout, signal);
  playing.progress.end();
  if (output !== "-") context.stderr.write(`${printable(output)}: ${written} bytes\n`);
}

/** Ctrl-C is how a recording ends: what has come until then is kept. */
async function writeStream(playing: Playing, output: string): Promise<void> {
  const { house, transfer, context, signal } = playing;
  const bytes = await streamBytes(house, transfer, signal);
  const written = await writeTo(bytes, output, context.stdout, new AbortController().signal);
  playing.progress.end();
  if (output !== "-") context.stderr.write(`${printable(output)}: ${written} bytes\n`);
}

/** All segments of the file, one after another, made as they are pulled. */
async function transportStream(
  transfer: Transfer,
  fileIndex: number,
  signal: AbortSignal,
): Promise<ReadableStream<Uint8Array>> {
  const media = await transfer.media(fileIndex, undefined, signal);
  if (media.tsProblem !== undefined) throw media.tsProblem;
  let next = 0;
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        if (next >= media.segments.length) return controller.close();
        controller.enqueue(await media.tsSegment(next++, signal));
      },
    },
    { highWaterMark: 0 },
  );
}

async function playInPlayer(playing: Playing, player: string): Promise<number> {
  const { house, transfer, file, format, progress, context, signal } = playing;
  const listener = await house.listen({ host: "127.0.0.1", port: 0 });
  try {
    const base = `http://127.0.0.1:${listener.address.port}`;
    const name = encodeURIComponent(file.name.split("/").pop() ?? "file");
    const url = transfer.segmentSource
      ? streamUrl(base, transfer)
      : format === "raw"
        ? `${base}/files/${transfer.infohash}/${file.index}/${name}`
        : `${base}/ace/getstream?infohash=${transfer.infohash}&_idx=${file.index}`;
    progress.end();
    context.stderr.write(`${printable(file.name)} in ${player}\n`);
    return await playIn(player, url, signal);
  } finally {
    await listener.close();
  }
}

function showProgress({ transfer, file, progress }: Playing): void {
  const { connectedPeers, bytesPerSecondDown } = transfer.figures;
  const live = transfer.live?.figures();
  progress.show(
    {
      doing: live ? transfer.name : (file.name.split("/").pop() ?? file.name),
      peers: connectedPeers,
      bytesPerSecond: bytesPerSecondDown,
      done: file.size > 0 ? (transfer.progress(file.index) / 100) * file.size : undefined,
      size: file.size,
      ...(live?.lastSeq !== undefined && { behindMs: live.lagMs }),
    },
    performance.now(),
  );
}

function chooseFile(transfer: Transfer, index: number | undefined): ContentFile {
  if (index === undefined) {
    const playable = transfer.files.filter((file) => file.isPlayable);
    const candidates = playable.length > 0 ? playable : transfer.files;
    return candidates.reduce((largest, file) => (file.size > largest.size ? file : largest));
  }
  const file = transfer.files.find((one) => one.index === index);
  if (file !== undefined) return file;
  const list = transfer.files.slice(0, 50).map((one) => `\n  ${one.index}  ${printable(one.name)}`);
  throw new SluiceError("no_such_file", `there is no file ${index}; there are:${list.join("")}`);
}

function formatOf(args: Arguments): Format {
  const written = args.flags.get("format") ?? "raw";
  if (written === "raw" || written === "ts") return written;
  throw usageError(`--format: expected raw or ts, but it is "${written}"`);
}

function indexOf(args: Arguments): number | undefined {
  const written = args.flags.get("index");
  if (written === undefined) return undefined;
  if (typeof written === "string" && /^\d{1,6}$/.test(written)) return Number(written);
  throw usageError(`--index: expected a whole number from 0, but it is "${written}"`);
}
