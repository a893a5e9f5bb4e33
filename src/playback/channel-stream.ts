import { resolvesWithin } from "../async/sleep.ts";
import { nullPackets } from "../media/ts-packet.ts";
import type { AudioConversion } from "../remux/contract.ts";
import type { Transfer } from "../transfer/contract.ts";
import { Channel, type ChannelDependencies } from "./channel.ts";
import type { ChannelSource } from "./channel-feed.ts";
import type { PlaybackRequest, RemuxForPlayer, Session } from "./contract.ts";
import { HELD_HEADERS_MS } from "./guarded-stream.ts";
import { KEEP_ALIVE_PACKETS } from "./ts-stream.ts";

/** Interval of null packets while the player waits. */
const KEEP_ALIVE_MS = 500;

/** All sound becomes AAC. */
export const TO_AAC: AudioConversion = { all: true, mp3: true, ac3: true, isHls: false, channels: 2 };

/** The session that plays a source. */
type SourceSession = Session & { readonly transfer?: Pick<Transfer, "figures" | "isUnreachable"> };

/** Returns a source that plays content in a session of its own. `remux` connects the pieces with their remuxer. */
export function sessionSource(
  name: string,
  request: PlaybackRequest,
  start: (request: PlaybackRequest, signal: AbortSignal) => Promise<SourceSession>,
  remux: RemuxForPlayer,
): ChannelSource {
  let transfer: SourceSession["transfer"];
  return {
    name,
    figures: () => transfer?.figures,
    isUnreachable: () => transfer?.isUnreachable ?? false,
    async open(signal, convertsSound) {
      // Sessions of one player id end each other.
      const audioConversion = request.audioConversion ?? (convertsSound ? TO_AAC : undefined);
      const session = await start({ ...request, playerId: undefined, audioConversion }, signal);
      ({ transfer } = session);
      try {
        await session.awaitStart(signal);
        const { body } = session;
        // A file that is a transport stream is played as it is.
        if (body?.mime === "video/mp2t") return body.open({ start: 0, end: body.size });
        return await session.transportStream(remux, signal);
      } catch (thrown) {
        session.stop();
        throw thrown;
      }
    },
  };
}

/**
 * Plays a channel of several sources, best first, as one transport stream. If the source that is played ends, fails or is silent for 3 s,
 * the next one is opened, and joined at its first key frame with continuous times and counters, so that the player does not notice. A
 * silent source stays open meanwhile: the one that delivers first is played. If all sources fail, the stream shows the test pattern
 * and tries them again in turn.
 *
 * CHOICE(channel-sources): a source that is slower than it plays, repeats itself, or whose bitrate collapses is replaced if another one
 * delivers. A better source is played again after it has delivered in time for 10 s, beside one that has played well for a minute.
 *
 * Resolves when the first data has arrived, or after 8 s. Rejects with the first problem if all sources fail before.
 */
export async function channelStream(
  dependencies: ChannelDependencies,
  sources: readonly ChannelSource[],
  signal?: AbortSignal,
): Promise<ReadableStream<Uint8Array>> {
  const channel = new Channel(dependencies, sources);
  const cancel = () => channel.close();
  signal?.addEventListener("abort", cancel);
  const first = channel.next();
  try {
    await resolvesWithin(first, dependencies.clock, HELD_HEADERS_MS);
  } catch (thrown) {
    channel.close();
    throw thrown;
  } finally {
    signal?.removeEventListener("abort", cancel);
  }
  channel.showsPattern = dependencies.hasPattern ?? true;
  let ready: Promise<Uint8Array | undefined> | undefined = first;
  let isCancelled = false;
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        ready ??= channel.next();
        const isDue = await resolvesWithin(ready, dependencies.clock, KEEP_ALIVE_MS).catch((thrown) => {
          channel.close();
          throw thrown;
        });
        if (isCancelled) return;
        if (!isDue) return controller.enqueue(nullPackets(KEEP_ALIVE_PACKETS));
        const packets = await ready;
        ready = undefined;
        if (packets) controller.enqueue(packets);
        else controller.close();
      },
      cancel() {
        isCancelled = true;
        channel.close();
      },
    },
    { highWaterMark: 0 },
  );
}
